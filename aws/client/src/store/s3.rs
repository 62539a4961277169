//! A state store in an S3 bucket. Conditional writes use S3's own headers: If-None-Match and If-Match on the `ETag`.

mod transfer;

use super::age::{AnswerDate, object_age};
use super::{Entry, Expect, FirstBytes, Object, Owner, StoreError, Version, fenced_error};
use crate::clients::unsigned;
use crate::fence::LockLost;
use crate::identity::caller_identity;
use crate::{Clients, failure};
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::operation::get_object::builders::GetObjectFluentBuilder;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{Delete, ObjectCannedAcl, ObjectIdentifier};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::DateTime;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use engine::{Class, Failure};
use md5::{Digest, Md5};
use node::digest::to_hex;
use sha2::Sha256;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Attempts of a conditional write whose outcome is unknown.
const ATTEMPTS: u32 = 6;

const GET: &str = "s3:GetObject";

const DELETE: &str = "s3:DeleteObject";

/// The most that DeleteObjects takes (its API reference).
const MAX_DELETED_KEYS: usize = 1000;

/// The response header with the region of the bucket.
const BUCKET_REGION: &str = "x-amz-bucket-region";

#[derive(Clone, Debug)]
pub(super) struct S3Store {
    /// Replaced once, when S3 reports that the bucket is in another region.
    clients: Arc<Mutex<Clients>>,
    bucket: String,
    prefix: String,
    /// Held during an upload, so that files are sent one after the other. In parallel they would share a slow connection,
    /// and each would take as long as all of them together.
    upload_lock: Arc<tokio::sync::Mutex<()>>,
    /// Files with more bytes are sent in parts.
    largest_put: u64,
    owner: Owner,
    /// The caller's account, once asked for.
    account: Arc<tokio::sync::OnceCell<String>>,
}

/// Why a call returned no result.
enum FailedCall {
    /// The bucket is in this region.
    Elsewhere(String),
    Failed(Failure),
}

impl S3Store {
    pub(super) fn new(clients: Clients, bucket: String, prefix: String) -> Self {
        let prefix = if prefix.is_empty() {
            prefix
        } else {
            format!("{prefix}/")
        };
        Self {
            clients: Arc::new(Mutex::new(clients)),
            bucket,
            prefix,
            upload_lock: Arc::default(),
            largest_put: transfer::LARGEST_PUT,
            owner: Owner::Anyone,
            account: Arc::default(),
        }
    }

    pub(super) fn owned_by(self, owner: Owner) -> Self {
        Self { owner, ..self }
    }

    pub(super) fn splitting_above(self, largest_put: u64) -> Self {
        Self {
            largest_put,
            ..self
        }
    }

    pub(super) fn set_caller(&self, account: &str) {
        // It may be known already; a caller has one account.
        let _ = self.account.set(account.to_owned());
    }

    /// The account without whose bucket nothing is written: S3 then answers 403 (S3 User Guide, "Verifying bucket
    /// ownership with bucket owner condition"). A bucket that was deleted can be registered by anybody.
    async fn expected_owner(&self) -> Result<Option<String>, Failure> {
        match &self.owner {
            Owner::Anyone => Ok(None),
            Owner::Account(account) => Ok(Some(account.clone())),
            Owner::Caller => {
                let clients = self.clients();
                let asked =
                    || async { caller_identity(&clients).await.map(|caller| caller.account) };
                self.account.get_or_try_init(asked).await.cloned().map(Some)
            }
        }
    }

    pub(super) async fn find_caller(&self) -> Result<(), StoreError> {
        const CALL: &str = "sts:GetCallerIdentity";
        let found = self.expected_owner().await;
        found
            .map(drop)
            .map_err(|failure| self.store_error("", CALL, failure))
    }

    /// The owner for a call that only reads: of [`Owner::Caller`] once he is known, because who only reads needs no STS.
    fn known_owner(&self) -> Option<String> {
        match &self.owner {
            Owner::Anyone => None,
            Owner::Account(account) => Some(account.clone()),
            Owner::Caller => self.account.get().cloned(),
        }
    }

    fn get_object(&self, s3: &aws_sdk_s3::Client, key: &str) -> GetObjectFluentBuilder {
        let request = s3.get_object().bucket(&self.bucket);
        let request = request.key(self.full_key(key));
        request.set_expected_bucket_owner(self.known_owner())
    }

    /// The same, but that no fence stops it.
    pub(super) fn without_fence(&self) -> Self {
        self.with_clients(self.clients().without_fence())
    }

    /// The same with connections of its own.
    pub(super) fn with_own_connections(&self) -> Self {
        self.with_clients(self.clients().with_own_connections())
    }

    fn with_clients(&self, clients: Clients) -> Self {
        Self {
            clients: Arc::new(Mutex::new(clients)),
            bucket: self.bucket.clone(),
            prefix: self.prefix.clone(),
            upload_lock: Arc::clone(&self.upload_lock),
            largest_put: self.largest_put,
            owner: self.owner.clone(),
            account: Arc::clone(&self.account),
        }
    }

    pub(super) async fn get(&self, key: &str) -> Result<Option<Object>, StoreError> {
        let call = |s3: aws_sdk_s3::Client| {
            let request = self.get_object(&s3, key);
            async move {
                let answered = AnswerDate::default();
                let request = request.customize().interceptor(answered.clone());
                let answer = request.send().await;
                let answer = answer.map_err(|error| classify_miss(GET, &error))?;
                let age = object_age(answered.answered_at(), answer.last_modified);
                let etag = answer.e_tag;
                let body = answer.body.collect().await;
                let body = body.map_err(|error| FailedCall::Failed(broken_body_error(&error)))?;
                Ok((body.into_bytes().to_vec(), etag, age))
            }
        };
        let found = self.unless_absent(key, self.in_region(call).await)?;
        let object = |(bytes, etag, age)| {
            Ok(Object {
                version: self.parse_version(key, etag)?,
                bytes,
                age,
            })
        };
        found.map(object).transpose()
    }

    /// The first `most` bytes; what comes after is not asked for.
    pub(super) async fn get_first(
        &self,
        key: &str,
        most: usize,
    ) -> Result<Option<FirstBytes>, StoreError> {
        let call = |s3: aws_sdk_s3::Client| {
            let request = self.get_object(&s3, key);
            async move {
                let answered = AnswerDate::default();
                let request = request.customize().interceptor(answered.clone());
                let answer = request.send().await;
                let answer = answer.map_err(|error| classify_miss(GET, &error))?;
                let age = object_age(answered.answered_at(), answer.last_modified);
                let mut body = answer.body;
                let mut bytes = Vec::new();
                while bytes.len() < most
                    && let Some(piece) = body.next().await
                {
                    bytes.extend_from_slice(
                        &piece.map_err(|error| FailedCall::Failed(broken_body_error(&error)))?,
                    );
                }
                bytes.truncate(most);
                Ok((bytes, age))
            }
        };
        self.unless_absent(key, self.in_region(call).await)
    }

    /// What was read, `None` of an object that is not there.
    fn unless_absent<T>(
        &self,
        key: &str,
        read: Result<T, Failure>,
    ) -> Result<Option<T>, StoreError> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(failure) if is_absent(&failure) => Ok(None),
            Err(failure) => Err(self.store_error(key, GET, failure)),
        }
    }

    /// A write without an answer may have happened. Then the object says so: if it holds our bytes, we won.
    pub(super) async fn put(
        &self,
        key: &str,
        bytes: Vec<u8>,
        expect: &Expect,
    ) -> Result<Version, StoreError> {
        let mut unsure = false;
        for attempt in 1.. {
            let failure = match self.put_once(key, bytes.clone(), expect).await {
                Ok(etag) => return self.parse_version(key, etag),
                Err(failure) => failure,
            };
            // A version was expected of what is not there.
            if is_conflict(&failure) || is_absent(&failure) {
                let now = if unsure { self.get(key).await? } else { None };
                return match now {
                    Some(now) if now.bytes == bytes => Ok(now.version),
                    _ => Err(conflict_error(key)),
                };
            }
            unsure |= failure.class == Class::Unknown;
            if !is_passing(&failure) || attempt >= ATTEMPTS {
                return Err(self.store_error(key, "s3:PutObject", failure));
            }
            wait_before_retry(attempt).await;
        }
        Err(conflict_error(key))
    }

    async fn put_once(
        &self,
        key: &str,
        bytes: Vec<u8>,
        expect: &Expect,
    ) -> Result<Option<String>, Failure> {
        let owner = self.expected_owner().await?;
        let call = |s3: aws_sdk_s3::Client| {
            let request = s3
                .put_object()
                .bucket(&self.bucket)
                .key(self.full_key(key))
                .set_expected_bucket_owner(owner.clone())
                .body(ByteStream::from(bytes.clone()));
            let request = match expect {
                Expect::Any => request,
                Expect::Absent => request.if_none_match("*"),
                Expect::Version(version) => request.if_match(&version.0),
            };
            let request = request.customize().config_override(without_retries());
            async move {
                let answer = request.send().await;
                let answer = answer.map_err(|error| classify_miss("s3:PutObject", &error))?;
                Ok(answer.e_tag)
            }
        };
        self.in_region(call).await
    }

    /// The region of the bucket.
    pub(super) async fn region(&self) -> Result<String, StoreError> {
        // The action that HeadBucket needs (its API reference).
        const CALL: &str = "s3:ListBucket";
        let call = |s3: aws_sdk_s3::Client| {
            let request = s3.head_bucket().bucket(&self.bucket);
            async move {
                let answer = request.send().await;
                // The answer to HEAD has no body with a code: that S3 redirects is in the status alone.
                let answer = answer.map_err(|error| match region_elsewhere(&error) {
                    Some(region) => FailedCall::Elsewhere(region),
                    None => classify_miss(CALL, &error),
                })?;
                Ok(answer.bucket_region)
            }
        };
        let found = self.in_region(call).await;
        let found = found.map_err(|failure| match failure.class {
            Class::Gone => StoreError::NoBucket {
                bucket: self.bucket.clone(),
            },
            _ => self.store_error("", CALL, failure),
        })?;
        Ok(found.unwrap_or_else(|| self.clients().region().to_owned()))
    }

    /// Writes an object that everybody can read, over whatever is there. Where the bucket's policy makes it public already, it has no
    /// access control list: new buckets have none (S3 User Guide, "Controlling ownership of objects and disabling ACLs").
    pub(super) async fn put_public(&self, key: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        const CALL: &str = "s3:PutObject";
        let by_policy = self.is_public_by_policy().await;
        let by_policy = by_policy
            .map_err(|failure| self.store_error(key, "s3:GetBucketPolicyStatus", failure))?;
        let acl = (!by_policy).then_some(ObjectCannedAcl::PublicRead);
        let call = |s3: aws_sdk_s3::Client| {
            let request = s3
                .put_object()
                .bucket(&self.bucket)
                .key(self.full_key(key))
                .content_type("application/json")
                .set_acl(acl.clone())
                .body(ByteStream::from(bytes.clone()));
            async move {
                let answer = request.send().await;
                answer.map_err(|error| classify_miss(CALL, &error))
            }
        };
        let done = self.in_region(call).await;
        done.map(drop)
            .map_err(|failure| self.store_error(key, CALL, self.explain_private(failure)))
    }

    /// True if somebody without credentials may read an object that is there.
    pub(super) async fn is_public(&self, key: &str) -> Result<bool, StoreError> {
        let call = |s3: aws_sdk_s3::Client| {
            let request = self.get_object(&unsigned(&s3), key);
            async move {
                let answer = request.send().await;
                answer.map_err(|error| classify_miss(GET, &error))
            }
        };
        match self.in_region(call).await {
            Ok(_) => Ok(true),
            Err(failure) if failure.class == Class::Denied => Ok(false),
            Err(failure) => Err(self.store_error(key, GET, failure)),
        }
    }

    /// Says what lets everybody read, where the bucket refuses access control lists that do: because it has none at all, or because of its
    /// Block Public Access (S3 User Guide, "Disabling ACLs", "Blocking public access").
    fn explain_private(&self, mut failure: Failure) -> Failure {
        const NO_LISTS: &str = "AccessControlListNotSupported";
        if failure.code == NO_LISTS || failure.message.contains("BlockPublicAcls") {
            NO_LISTS.clone_into(&mut failure.code);
            failure.class = Class::Invalid;
            failure.hint = Some(format!(
                "give the bucket {} a policy with which everybody may s3:GetObject there, and turn off its Block Public Access for policies",
                self.bucket
            ));
        }
        failure
    }

    async fn is_public_by_policy(&self) -> Result<bool, Failure> {
        let call = |s3: aws_sdk_s3::Client| {
            let request = s3.get_bucket_policy_status().bucket(&self.bucket);
            async move {
                let answer = request.send().await;
                answer.map_err(|error| classify_miss("s3:GetBucketPolicyStatus", &error))
            }
        };
        match self.in_region(call).await {
            Ok(answer) => {
                Ok(answer.policy_status.and_then(|status| status.is_public) == Some(true))
            }
            Err(failure) if failure.code == "NoSuchBucketPolicy" => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    pub(super) async fn sha256(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let call = |s3: aws_sdk_s3::Client| {
            let request = self.get_object(&s3, key);
            async move {
                let answer = request.send().await;
                let mut body = answer.map_err(|error| classify_miss(GET, &error))?.body;
                let mut digest = Sha256::new();
                while let Some(piece) = body.next().await {
                    digest.update(piece.map_err(|error| {
                        FailedCall::Failed(failure::local_failure(
                            Class::Unknown,
                            GET,
                            error.to_string(),
                        ))
                    })?);
                }
                Ok(digest.finalize().to_vec())
            }
        };
        self.unless_absent(key, self.in_region(call).await)
    }

    /// A deletion without an answer that finds nothing afterwards has happened.
    pub(super) async fn delete(&self, key: &str, expect: &Expect) -> Result<(), StoreError> {
        let mut unsure = false;
        for attempt in 1.. {
            let Err(failure) = self.delete_once(key, expect).await else {
                return Ok(());
            };
            if is_conflict(&failure) || is_absent(&failure) {
                let done = !matches!(expect, Expect::Version(_))
                    || (unsure && self.get(key).await?.is_none());
                return if done {
                    Ok(())
                } else {
                    Err(conflict_error(key))
                };
            }
            unsure |= failure.class == Class::Unknown;
            if !is_passing(&failure) || attempt >= ATTEMPTS {
                return Err(self.store_error(key, "s3:DeleteObject", failure));
            }
            wait_before_retry(attempt).await;
        }
        Ok(())
    }

    async fn delete_once(&self, key: &str, expect: &Expect) -> Result<(), Failure> {
        let owner = self.expected_owner().await?;
        let call = |s3: aws_sdk_s3::Client| {
            let request = s3
                .delete_object()
                .bucket(&self.bucket)
                .key(self.full_key(key));
            let request = request.set_expected_bucket_owner(owner.clone());
            let request = match expect {
                Expect::Version(version) => request.if_match(&version.0),
                Expect::Any | Expect::Absent => request,
            };
            let request = request.customize().config_override(without_retries());
            async move {
                let answer = request.send().await;
                let done = answer.map(drop);
                done.map_err(|error| classify_miss("s3:DeleteObject", &error))
            }
        };
        self.in_region(call).await
    }

    /// Removes objects whatever they hold, a thousand a call.
    pub(super) async fn delete_all(&self, keys: &[String]) -> Result<(), StoreError> {
        let owner = self.expected_owner().await;
        let owner = owner.map_err(|failure| self.store_error("", DELETE, failure))?;
        for some in keys.chunks(MAX_DELETED_KEYS) {
            let objects: Result<Vec<_>, _> = some
                .iter()
                .map(|key| ObjectIdentifier::builder().key(self.full_key(key)).build())
                .collect();
            let unsent = |error: aws_sdk_s3::error::BuildError| {
                let failure = failure::local_failure(Class::Invalid, DELETE, error.to_string());
                self.store_error("", DELETE, failure)
            };
            let these = Delete::builder().set_objects(Some(objects.map_err(unsent)?));
            let these = these.quiet(true).build().map_err(unsent)?;
            let call = |s3: aws_sdk_s3::Client| {
                let request = s3.delete_objects().bucket(&self.bucket);
                let request = request.set_expected_bucket_owner(owner.clone());
                let request = request.delete(these.clone());
                async move {
                    let answer = request.send().await;
                    answer.map_err(|error| classify_miss(DELETE, &error))
                }
            };
            let answer = self.in_region(call).await;
            let answer = answer.map_err(|failure| self.store_error("", DELETE, failure))?;
            // The call succeeds even where S3 keeps an object, and says so in the answer.
            if let Some(response_version) = answer.errors().first() {
                let key = response_version.key().unwrap_or_default();
                let key = key.strip_prefix(&self.prefix).unwrap_or(key);
                let (code, message) = (response_version.code(), response_version.message());
                let failure = failure::item_failure(DELETE, code.unwrap_or_default(), message);
                return Err(self.store_error(key, DELETE, failure));
            }
        }
        Ok(())
    }

    /// Whether the bucket keeps what is deleted, as a version of before.
    pub(super) async fn keeps_versions(&self) -> Result<bool, StoreError> {
        const CALL: &str = "s3:GetBucketVersioning";
        let call = |s3: aws_sdk_s3::Client| {
            let request = s3.get_bucket_versioning().bucket(&self.bucket);
            let request = request.set_expected_bucket_owner(self.known_owner());
            async move {
                let answer = request.send().await;
                answer.map_err(|error| classify_miss(CALL, &error))
            }
        };
        let answer = self.in_region(call).await;
        let answer = answer.map_err(|failure| self.store_error("", CALL, failure))?;
        // A bucket whose versioning was suspended still has the versions of before.
        Ok(answer.status.is_some())
    }

    /// Entries, and how many calls they took.
    pub(super) async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        until: Option<&str>,
    ) -> Result<(Vec<Entry>, u64), StoreError> {
        let (mut entries, mut pages, mut token) = (Vec::new(), 0, None);
        loop {
            let call = |s3: aws_sdk_s3::Client| {
                let request = s3
                    .list_objects_v2()
                    .bucket(&self.bucket)
                    .prefix(self.full_key(prefix))
                    .set_start_after(start_after.map(|after| self.full_key(after)))
                    .set_continuation_token(token.clone())
                    .set_expected_bucket_owner(self.known_owner());
                async move {
                    let answered = AnswerDate::default();
                    let request = request.customize().interceptor(answered.clone());
                    let answer = request.send().await;
                    let answer = answer.map_err(|error| classify_miss("s3:ListBucket", &error))?;
                    Ok((answer, answered.answered_at()))
                }
            };
            let answer = self.in_region(call).await;
            let (page, answered_at) =
                answer.map_err(|failure| self.store_error(prefix, "s3:ListBucket", failure))?;
            pages += 1;
            entries.extend(
                page.contents()
                    .iter()
                    .filter_map(|item| self.parse_entry(item, answered_at)),
            );
            token = page.next_continuation_token;
            let past = entries
                .last()
                .is_some_and(|last: &Entry| until.is_some_and(|until| last.key.as_str() > until));
            if token.is_none() || past {
                return Ok((entries, pages));
            }
        }
    }

    fn parse_entry(
        &self,
        item: &aws_sdk_s3::types::Object,
        answered_at: Option<DateTime>,
    ) -> Option<Entry> {
        let modified = item.last_modified().copied();
        Some(Entry {
            key: item.key()?.strip_prefix(&self.prefix)?.to_owned(),
            version: Version(item.e_tag()?.to_owned()),
            size: u64::try_from(item.size().unwrap_or_default()).unwrap_or_default(),
            written: modified.map(|modified| modified.secs()),
            age: object_age(answered_at, modified),
        })
    }

    /// Makes the call, and repeats it once in the region of the bucket if S3 redirects it.
    async fn in_region<T, F: Future<Output = Result<T, FailedCall>>>(
        &self,
        call: impl Fn(aws_sdk_s3::Client) -> F,
    ) -> Result<T, Failure> {
        let clients = self.clients();
        let region = match call(clients.s3.clone()).await {
            Ok(answer) => return Ok(answer),
            Err(FailedCall::Failed(failure)) => return Err(failure),
            Err(FailedCall::Elsewhere(region)) => region,
        };
        let there = clients.in_region(&region);
        *self.clients.lock().unwrap_or_else(PoisonError::into_inner) = there.clone();
        call(there.s3).await.map_err(|miss| match miss {
            FailedCall::Failed(failure) => failure,
            FailedCall::Elsewhere(other) => failure::local_failure(
                Class::Invalid,
                "s3",
                format!(
                    "requests for the bucket {} were redirected to {region} and then to {other}",
                    self.bucket
                ),
            ),
        })
    }

    fn clients(&self) -> Clients {
        self.clients
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn full_key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    fn parse_version(&self, key: &str, etag: Option<String>) -> Result<Version, StoreError> {
        etag.map(Version).ok_or_else(|| {
            let failure =
                failure::local_failure(Class::Unknown, "s3", "the answer carries no ETag");
            self.store_error(key, GET, failure)
        })
    }

    fn store_error(&self, key: &str, action: &'static str, source: Failure) -> StoreError {
        let (bucket, key) = (self.bucket.clone(), self.full_key(key));
        match source.code.as_str() {
            "NoSuchBucket" => StoreError::NoBucket { bucket },
            failure::FENCED => fenced_error(&key, LockLost),
            "AccessDenied" => StoreError::Denied {
                bucket,
                key,
                action,
                source,
            },
            _ => StoreError::S3 {
                bucket,
                key,
                source,
            },
        }
    }
}

/// The version that S3 gives an object with this content: of what it encrypts with its own keys, the MD5.
pub(super) fn expected_version(bytes: &[u8]) -> Version {
    Version(format!("\"{}\"", to_hex(&Md5::digest(bytes))))
}

/// Disables the SDK's retries: the retry loop here reads the object before it repeats a write, the SDK does not.
fn without_retries() -> aws_sdk_s3::config::Builder {
    aws_sdk_s3::Config::builder().retry_config(RetryConfig::disabled())
}

async fn wait_before_retry(attempt: u32) {
    tokio::time::sleep(Duration::from_millis(100) * 2_u32.pow(attempt)).await;
}

fn conflict_error(key: &str) -> StoreError {
    StoreError::Conflict {
        key: key.to_owned(),
    }
}

/// The connection broke while the response body was read.
fn broken_body_error(error: &impl std::fmt::Display) -> Failure {
    failure::local_failure(Class::Unknown, GET, error.to_string())
}

/// True if the object does not exist. A missing bucket is a different failure.
fn is_absent(failure: &Failure) -> bool {
    failure.class == Class::Gone && failure.code != "NoSuchBucket"
}

/// True if the condition of the write did not hold (HTTP 412).
fn is_conflict(failure: &Failure) -> bool {
    failure.code == "PreconditionFailed"
}

/// The same request may succeed. 409 `ConditionalRequestConflict` says only that another write or deletion was under way:
/// "On a 409 failure you should retry the upload" (API reference of `PutObject`, `If-None-Match`).
fn is_passing(failure: &Failure) -> bool {
    matches!(failure.class, Class::Unknown | Class::Throttled)
        || failure.code == "ConditionalRequestConflict"
}

fn classify_miss<E>(call: &str, error: &SdkError<E, HttpResponse>) -> FailedCall
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let failure = failure::classify_failure(call, error);
    let moved = matches!(
        failure.code.as_str(),
        "PermanentRedirect"
            | "TemporaryRedirect"
            | "AuthorizationHeaderMalformed"
            | "IllegalLocationConstraintException"
    );
    let region = error
        .raw_response()
        .and_then(|response| response.headers().get(BUCKET_REGION));
    match region {
        Some(region) if moved => FailedCall::Elsewhere(region.to_owned()),
        _ => FailedCall::Failed(failure),
    }
}

/// The region to which S3 redirects (301 or 307), by the answer's header alone.
fn region_elsewhere<E>(error: &SdkError<E, HttpResponse>) -> Option<String> {
    let response = error.raw_response()?;
    let redirects = matches!(response.status().as_u16(), 301 | 307 | 400);
    let region = response.headers().get(BUCKET_REGION);
    region.filter(|_| redirects).map(str::to_owned)
}
