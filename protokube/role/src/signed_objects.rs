//! Reads objects of the state store that protokube obeys: only what kctl has signed for this cluster, and none that is older than one that
//! was used before.

use crate::keysets::read_keyset_object;
use crate::lock::lock_ignoring_poison;
use anyhow::{Context, bail};
use aws_client::store::Store;
use node::pki::STATE_SIGNER;
use node::protokube::ADDON_RECORD;
use node::signed::{SIGNATURE_LIMIT, SignedPlace, is_from_future, signature_key, verify_text};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Annotation of the ConfigMap [`ADDON_RECORD`] with the serials that control planes have used, JSON.
pub const SERIALS_ANNOTATION: &str = "kctl.dev/signed-serials";

/// Highest serial by key.
pub type Serials = BTreeMap<String, u64>;

/// A text that kctl has signed.
#[derive(Clone, Debug)]
pub struct SignedText {
    pub text: String,
    /// Grows with every signature of the object.
    pub serial: u64,
}

/// The signed objects of a cluster. Clones share what they remember.
#[derive(Clone, Debug)]
pub struct SignedObjects {
    /// State store at the cluster's base.
    store: Store,
    cluster: String,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Debug, Default)]
struct Memory {
    /// Serials of what was used, here or by another control plane.
    used: Serials,
    /// What was verified last, by key: the same text is not verified again.
    verified: BTreeMap<String, SignedText>,
}

impl SignedObjects {
    /// The signed objects of this cluster in the state store at its base.
    pub fn new(store: &Store, cluster: &str) -> Self {
        Self {
            store: store.clone(),
            cluster: cluster.to_owned(),
            memory: Arc::default(),
        }
    }

    /// The state store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The text of an object; `None`: there is none. Fails if kctl has not signed it, if it is from the future, or if a newer one was used
    /// before. `most` is the limit of the object, bytes.
    pub async fn read(&self, key: &str, most: usize) -> anyhow::Result<Option<SignedText>> {
        let read = self.store.get_first(key, most).await;
        let read = read.with_context(|| format!("could not read {key} of the state store"))?;
        let Some(bytes) = read else { return Ok(None) };
        let text = String::from_utf8(bytes).with_context(|| format!("{key} is not text"))?;
        let signed = self.verify(key, text).await?;
        if is_from_future(signed.serial, OffsetDateTime::now_utc()) {
            bail!(
                "{key} was signed {}, which is more than a day in the future, so it is not used: set the clock of this instance; if it is right, \
                 somebody else had a key of {STATE_SIGNER}: create and promote another one, distrust it, and run `kctl update {} --refresh --yes`",
                serial_time(signed.serial),
                self.cluster
            );
        }
        self.use_serial(key, signed.serial)?;
        Ok(Some(signed))
    }

    async fn verify(&self, key: &str, text: String) -> anyhow::Result<SignedText> {
        let known = lock_ignoring_poison(&self.memory)
            .verified
            .get(key)
            .cloned();
        if let Some(signed) = known.filter(|signed| signed.text == text) {
            return Ok(signed);
        }
        let keyset = read_keyset_object(&self.store, STATE_SIGNER).await?;
        let at = signature_key(key, &text);
        let read = self.store.get_first(&at, SIGNATURE_LIMIT).await;
        let read = read.with_context(|| format!("could not read {at} of the state store"))?;
        let signature = String::from_utf8(read.unwrap_or_default()).unwrap_or_default();
        let cluster = &self.cluster;
        let serial = match verify_text(&keyset, SignedPlace { cluster, key }, &text, &signature) {
            Ok(serial) => serial,
            Err(error) => bail!(
                "{error}, so it is not used: run `kctl update {cluster} --refresh --yes`, which writes it again"
            ),
        };
        let signed = SignedText { text, serial };
        let mut memory = lock_ignoring_poison(&self.memory);
        memory.verified.insert(key.to_owned(), signed.clone());
        Ok(signed)
    }

    /// Fails if an object with a higher serial was used; otherwise remembers this one.
    pub fn use_serial(&self, key: &str, serial: u64) -> anyhow::Result<()> {
        let mut memory = lock_ignoring_poison(&self.memory);
        let used = memory.used.entry(key.to_owned()).or_default();
        if serial < *used && is_from_future(*used, OffsetDateTime::now_utc()) {
            bail!(
                "{key} is not used, because the ConfigMap {ADDON_RECORD} says that one of {} was used before, which is more than a day in the future: \
                 set the clock of this instance; if it is right, run `kubectl -n kube-system annotate configmap {ADDON_RECORD} \
                 {SERIALS_ANNOTATION}-` and restart protokube on all control planes",
                serial_time(*used)
            );
        }
        if serial < *used {
            bail!(
                "{key} was written {}, and one of {} was used before: somebody has put an older one back, so it is not used: delete it from \
                 the state store and run `kctl update {} --yes`, which writes it again",
                serial_time(serial),
                serial_time(*used),
                self.cluster
            );
        }
        *used = serial;
        Ok(())
    }

    /// Adds what control planes have used before, and returns all that is remembered.
    pub fn merge_serials(&self, others: &Serials) -> Serials {
        let mut memory = lock_ignoring_poison(&self.memory);
        for (key, serial) in others {
            let used = memory.used.entry(key.clone()).or_default();
            *used = (*used).max(*serial);
        }
        memory.used.clone()
    }
}

/// When an object with this serial was signed.
fn serial_time(serial: u64) -> String {
    let seconds = i64::try_from(serial).ok();
    let time = seconds.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    let text = time.and_then(|time| time.format(&Rfc3339).ok());
    text.unwrap_or_else(|| serial.to_string())
}
