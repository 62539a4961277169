//! Nothing is applied or removed by a list that kctl has not signed for this cluster, or that is older than one that was used.

use super::fixture::{AddonFixture, CLUSTER, config_map, manifest_text};
use super::signer::{put_signed, signer_in};
use aws_client::store::Expect;
use node::addons::CHANNEL_KEY;
use node::digest::sha256_hex;
use node::pki::{KeyAlgorithm, STATE_SIGNER, SystemKeys, mint_keyset};
use node::report::Status;
use node::signed::{SignedPlace, sign_text, signature_key};
use serde_json::json;
use time::OffsetDateTime;

/// A list with one addon, whose manifest is stored too.
async fn foreign_list(fixture: &AddonFixture) -> String {
    let manifest = manifest_text("evil", &[config_map("evil")]);
    let sha256 = sha256_hex(&manifest);
    fixture.put_object("addons/evil/v1.yaml", manifest).await;
    let addon = json!({"name": "evil", "id": "v1", "manifest": "evil/v1.yaml", "manifestHash": sha256, "selector": {}});
    let list =
        json!({"kind": "Addons", "metadata": {"name": "bootstrap"}, "spec": {"addons": [addon]}});
    format!("{list}\n")
}

async fn stored_text(fixture: &AddonFixture, key: &str) -> String {
    let object = fixture.store.get(key).await.unwrap().unwrap();
    String::from_utf8(object.bytes).unwrap()
}

#[tokio::test]
async fn a_list_that_kctl_did_not_sign_applies_and_removes_nothing() {
    let (fixture, mut reconciler) =
        AddonFixture::with_applied_addons(&[("first", &[config_map("a")])]).await;
    let good = stored_text(&fixture, CHANNEL_KEY).await;
    let signature = stored_text(&fixture, &signature_key(CHANNEL_KEY, &good)).await;
    let evil = foreign_list(&fixture).await;
    let empty = "kind: Addons\nmetadata: {name: bootstrap}\nspec: {addons: []}\n".to_owned();
    let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
    let foreign = mint_keyset(STATE_SIGNER, KeyAlgorithm::EcdsaP256, &mut keys).unwrap();
    let own = signer_in(&fixture.store).await;
    let place = |cluster, key| SignedPlace { cluster, key };
    let sign = |keyset, place| sign_text(keyset, place, &evil, u64::MAX).unwrap();
    let newer = signature.replacen("v1 1 ", "v1 2 ", 1);
    assert_ne!(newer, signature);
    let changed = format!("{good}# more\n");
    let forged = [
        (evil.clone(), None),
        (empty.clone(), None),
        (String::new(), None),
        (evil.clone(), Some(signature.clone())),
        (empty, Some(signature.clone())),
        (changed, Some(signature.clone())),
        (evil.clone(), Some(newer.clone())),
        (evil.clone(), Some(String::new())),
        (
            evil.clone(),
            Some(sign(&foreign, place(CLUSTER, CHANNEL_KEY))),
        ),
        (
            evil.clone(),
            Some(sign(&own, place("b.example.com", CHANNEL_KEY))),
        ),
        (
            evil.clone(),
            Some(sign(&own, place(CLUSTER, "addons/other.yaml"))),
        ),
    ];
    for (list, signature) in forged {
        if let Some(signature) = signature {
            fixture
                .put_object(&signature_key(CHANNEL_KEY, &list), signature)
                .await;
        }
        fixture.put_object(CHANNEL_KEY, list.clone()).await;
        for reconciler in [&mut reconciler, &mut fixture.new_reconciler()] {
            assert!(!reconciler.run_round().await, "{list}");
        }
        assert_eq!(fixture.server.object_names(), ["a"], "{list}");
        let lines = fixture.take_log_lines();
        let next_step = format!("run `kctl update {CLUSTER} --refresh --yes`");
        let says = |(status, why): &(Status, String)| {
            *status == Status::Failed && why.contains(&next_step)
        };
        assert!(!lines.is_empty() && lines.iter().all(says), "{lines:?}");
    }
    // A signature that was made newer, of the right list.
    fixture.put_object(CHANNEL_KEY, good.clone()).await;
    let at = signature_key(CHANNEL_KEY, &good);
    fixture.put_object(&at, newer).await;
    assert!(!fixture.new_reconciler().run_round().await);
    fixture.put_object(&at, signature).await;
    fixture.take_log_lines();
    fixture.run_healthy_round(&mut reconciler).await;
}

/// Whoever had a key once could spoil the record for good.
#[tokio::test]
async fn a_list_from_the_future_is_not_used_and_not_recorded() {
    let (fixture, mut reconciler) =
        AddonFixture::with_applied_addons(&[("first", &[config_map("a")])]).await;
    let good = stored_text(&fixture, CHANNEL_KEY).await;
    let evil = foreign_list(&fixture).await;
    let own = signer_in(&fixture.store).await;
    let place = SignedPlace {
        cluster: CLUSTER,
        key: CHANNEL_KEY,
    };
    let days = |days: i64| {
        let time = OffsetDateTime::now_utc() + time::Duration::days(days);
        u64::try_from(time.unix_timestamp()).unwrap()
    };
    for serial in [u64::MAX, days(2)] {
        let signature = sign_text(&own, place, &evil, serial).unwrap();
        fixture
            .put_object(&signature_key(CHANNEL_KEY, &evil), signature)
            .await;
        fixture.put_object(CHANNEL_KEY, evil.clone()).await;
        fixture.take_log_lines();
        for reconciler in [&mut reconciler, &mut fixture.new_reconciler()] {
            assert!(!reconciler.run_round().await);
        }
        // The first one says once that it fails.
        let lines = fixture.take_log_lines();
        let says = |(_, why): &(Status, String)| why.contains("in the future");
        assert!(!lines.is_empty() && lines.iter().all(says), "{lines:?}");
    }
    assert_eq!(fixture.server.object_names(), ["a"]);
    // What is signed now is used after that.
    let signature = sign_text(&own, place, &good, days(0)).unwrap();
    fixture
        .put_object(&signature_key(CHANNEL_KEY, &good), signature)
        .await;
    fixture.put_object(CHANNEL_KEY, good).await;
    fixture.take_log_lines();
    fixture.run_healthy_round(&mut reconciler).await;
}

#[tokio::test]
async fn a_recorded_serial_from_the_future_names_the_annotation_to_remove() {
    let fixture = AddonFixture::new().await;
    let objects = protokube_role::signed_objects::SignedObjects::new(&fixture.store, CLUSTER);
    objects.merge_serials(&[(CHANNEL_KEY.to_owned(), u64::MAX)].into());
    let error = objects.use_serial(CHANNEL_KEY, 1).unwrap_err().to_string();
    assert!(
        error.contains("annotate configmap kctl-addons kctl.dev/signed-serials-"),
        "{error}"
    );
}

#[tokio::test]
async fn an_older_list_that_somebody_puts_back_is_not_used_even_after_a_restart() {
    let fixture = AddonFixture::new().await;
    fixture
        .store_addons(&[("first", &[config_map("vulnerable")])])
        .await;
    let old = stored_text(&fixture, CHANNEL_KEY).await;
    let mut reconciler = fixture.new_reconciler();
    fixture.run_healthy_round(&mut reconciler).await;
    fixture
        .store_addons(&[("first", &[config_map("mended")])])
        .await;
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(fixture.server.object_names(), ["mended"]);
    let manifest = manifest_text("first", &[config_map("vulnerable")]);
    fixture.put_object("addons/first/v1.yaml", manifest).await;
    // Its signature is still there.
    fixture.put_object(CHANNEL_KEY, old).await;
    fixture.take_log_lines();
    for reconciler in [&mut reconciler, &mut fixture.new_reconciler()] {
        assert!(!reconciler.run_round().await);
        assert_eq!(fixture.server.object_names(), ["mended"]);
        let lines = fixture.take_log_lines();
        assert!(lines[0].1.contains("put an older one back"), "{lines:?}");
    }
    // The next step that it names: kctl signs with a greater serial.
    fixture
        .store
        .delete(CHANNEL_KEY, Expect::Any)
        .await
        .unwrap();
    for _ in 0..2 {
        put_signed(&fixture.store, CLUSTER, CHANNEL_KEY, "x: y\n").await;
    }
    fixture
        .store_addons(&[("first", &[config_map("mended")])])
        .await;
    fixture.run_healthy_round(&mut reconciler).await;
}
