//! Files to and from S3: sent whole or, if S3 takes no such PUT, in parts; received with as many requests as it takes.

use super::{
    ATTEMPTS, FailedCall, GET, S3Store, broken_body_error, classify_miss, conflict_error,
    is_absent, is_conflict, is_passing, wait_before_retry, without_retries,
};
use crate::failure;
use crate::store::{Encryption, StoreError, create_empty_file};
use aws_sdk_s3::config::StalledStreamProtectionConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{
    ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart, ServerSideEncryption,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{Class, Failure};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

/// The most that one PUT takes (S3 User Guide, "Uploading objects": 5 GB).
pub(super) const LARGEST_PUT: u64 = 5 << 30;

/// Bytes of a part. S3 takes 10,000 of at least 5 MiB each but for the last ("Amazon S3 multipart upload limits"), so this is enough for
/// 78 GiB; larger files have larger parts.
const PART: u64 = 8 << 20;
const MAX_PARTS: u64 = 10_000;

const PUT: &str = "s3:PutObject";

/// The slowest line on which a file still gets through: 256 kbit/s.
const SLOWEST: u64 = 32 * 1024;

/// How long nothing at all may leave before a file counts as stuck. The SDK's five seconds are less than a full socket
/// buffer takes to drain on a thin line.
const STUCK: Duration = Duration::from_secs(30);

/// How long sending `bytes` may take. The SDK counts the body into an attempt (`aws-smithy-runtime`, `orchestrator.rs`:
/// the timeout spans from signing to the answer's headers), so one bound for all calls would cut every large file.
fn transfer_timeouts(patience: Duration, bytes: u64) -> TimeoutConfig {
    TimeoutConfig::builder()
        .operation_attempt_timeout(patience + Duration::from_secs(bytes / SLOWEST))
        .build()
}

fn stall_protection() -> StalledStreamProtectionConfig {
    StalledStreamProtectionConfig::enabled()
        .upload_enabled(true)
        .grace_period(STUCK)
        .build()
}

/// A file to send, and what is known of it.
struct Upload<'a> {
    key: &'a str,
    file: &'a Path,
    sha256: &'a [u8],
    bytes: u64,
    encryption: Option<ServerSideEncryption>,
    owner: Option<String>,
}

/// A file that is being received.
struct Download<'a> {
    path: &'a Path,
    file: File,
    digest: Sha256,
    bytes: u64,
    /// What the object may have.
    most: u64,
    /// Of the object that the first request found.
    etag: Option<String>,
}

/// Why a file is not received.
enum Unreceived {
    Failed(Failure),
    TooLarge,
}

impl From<Failure> for Unreceived {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl S3Store {
    /// As [`S3Store::put`] of what must not be there. S3 or this code checks the sha256, so that a file which changes while it is sent is
    /// not stored.
    pub(in crate::store) async fn put_file(
        &self,
        key: &str,
        file: &Path,
        sha256: &[u8],
        encryption: Encryption,
    ) -> Result<(), StoreError> {
        let _one = self.upload_lock.lock().await;
        let owner = self.expected_owner().await;
        let bytes = fs::metadata(file).map_err(|error| unreadable(file, &error));
        let upload = Upload {
            key,
            file,
            sha256,
            bytes: bytes
                .map_err(|failure| self.store_error(key, PUT, failure))?
                .len(),
            encryption: match encryption {
                Encryption::S3Keys => Some(ServerSideEncryption::Aes256),
                Encryption::Bucket => None,
            },
            owner: owner.map_err(|failure| self.store_error(key, PUT, failure))?,
        };
        let mut unsure = false;
        for attempt in 1.. {
            let sent = match upload.bytes > self.largest_put {
                true => self.put_parts(&upload).await,
                false => self.put_whole(&upload).await,
            };
            let Err(failure) = sent else {
                return Ok(());
            };
            if is_conflict(&failure) {
                // An attempt without an answer may have stored it.
                let is_ours = unsure && self.sha256(key).await?.as_deref() == Some(sha256);
                return if is_ours {
                    Ok(())
                } else {
                    Err(conflict_error(key))
                };
            }
            unsure |= failure.class == Class::Unknown;
            if !is_passing(&failure) || attempt >= ATTEMPTS {
                return Err(self.store_error(key, PUT, failure));
            }
            wait_before_retry(attempt).await;
        }
        Err(conflict_error(key))
    }

    async fn put_whole(&self, upload: &Upload<'_>) -> Result<(), Failure> {
        let patience = self.clients().attempt_timeout();
        let call = |s3: aws_sdk_s3::Client| async move {
            let body = ByteStream::from_path(upload.file).await;
            let body = body.map_err(|error| FailedCall::Failed(unreadable(upload.file, &error)))?;
            let request = s3
                .put_object()
                .bucket(&self.bucket)
                .key(self.full_key(upload.key))
                .set_server_side_encryption(upload.encryption.clone())
                .checksum_sha256(STANDARD.encode(upload.sha256))
                .if_none_match("*")
                .set_expected_bucket_owner(upload.owner.clone())
                .body(body);
            let upload_config = without_retries()
                .timeout_config(transfer_timeouts(patience, upload.bytes))
                .stalled_stream_protection(stall_protection());
            let answer = request
                .customize()
                .config_override(upload_config)
                .send()
                .await;
            let done = answer.map(drop);
            done.map_err(|error| classify_miss(PUT, &error))
        };
        self.in_region(call).await
    }

    /// Sends the file in parts. If that fails, S3 is asked to drop the parts; if it is not, a lifecycle rule of the bucket has to.
    async fn put_parts(&self, upload: &Upload<'_>) -> Result<(), Failure> {
        let call = |s3: aws_sdk_s3::Client| async move {
            let request = s3
                .create_multipart_upload()
                .bucket(&self.bucket)
                .key(self.full_key(upload.key))
                .set_server_side_encryption(upload.encryption.clone())
                .checksum_algorithm(ChecksumAlgorithm::Sha256)
                .set_expected_bucket_owner(upload.owner.clone());
            let answer = request.send().await;
            answer.map_err(|error| classify_miss(PUT, &error))
        };
        let id = self.in_region(call).await?.upload_id;
        let id = id.ok_or_else(|| {
            failure::local_failure(Class::Unknown, PUT, "S3 says no id of the upload")
        })?;
        let ended = match self.send_parts(upload, &id).await {
            Ok(parts) => self.complete_upload(upload, &id, parts).await,
            Err(failure) => Err(failure),
        };
        if ended.is_err() {
            let s3 = self.clients().s3;
            let abort = s3.abort_multipart_upload().bucket(&self.bucket);
            let abort = abort.key(self.full_key(upload.key)).upload_id(&id);
            let _ = abort
                .set_expected_bucket_owner(upload.owner.clone())
                .send()
                .await;
        }
        ended
    }

    async fn send_parts(
        &self,
        upload: &Upload<'_>,
        id: &str,
    ) -> Result<Vec<CompletedPart>, Failure> {
        let mut file = File::open(upload.file).map_err(|error| unreadable(upload.file, &error))?;
        let size = PART.max(upload.bytes.div_ceil(MAX_PARTS));
        let (mut whole, mut parts) = (Sha256::new(), Vec::new());
        for number in 1.. {
            let mut bytes = Vec::new();
            let read = Read::by_ref(&mut file).take(size).read_to_end(&mut bytes);
            read.map_err(|error| unreadable(upload.file, &error))?;
            if bytes.is_empty() {
                break;
            }
            whole.update(&bytes);
            parts.push(self.send_part(upload, (id, number), bytes).await?);
        }
        if whole.finalize()[..] != *upload.sha256 {
            let changed = io::Error::new(io::ErrorKind::InvalidData, "it has changed meanwhile");
            return Err(unreadable(upload.file, &changed));
        }
        Ok(parts)
    }

    /// A part can be sent again: the last one of its number counts.
    async fn send_part(
        &self,
        upload: &Upload<'_>,
        (id, number): (&str, i32),
        bytes: Vec<u8>,
    ) -> Result<CompletedPart, Failure> {
        let checksum = &STANDARD.encode(Sha256::digest(&bytes));
        let bytes = &bytes;
        let patience = self.clients().attempt_timeout();
        let call = |s3: aws_sdk_s3::Client| async move {
            let request = s3
                .upload_part()
                .bucket(&self.bucket)
                .key(self.full_key(upload.key))
                .upload_id(id)
                .part_number(number)
                .checksum_sha256(checksum)
                .set_expected_bucket_owner(upload.owner.clone())
                .body(ByteStream::from(bytes.clone()));
            let config = aws_sdk_s3::Config::builder()
                .timeout_config(transfer_timeouts(patience, bytes.len() as u64))
                .stalled_stream_protection(stall_protection());
            let answer = request.customize().config_override(config).send().await;
            answer.map_err(|error| classify_miss(PUT, &error))
        };
        let sent = self.in_region(call).await?;
        let part = CompletedPart::builder().part_number(number);
        let part = part.set_e_tag(sent.e_tag).checksum_sha256(checksum);
        Ok(part.build())
    }

    async fn complete_upload(
        &self,
        upload: &Upload<'_>,
        id: &str,
        parts: Vec<CompletedPart>,
    ) -> Result<(), Failure> {
        let parts = CompletedMultipartUpload::builder().set_parts(Some(parts));
        let parts = &parts.build();
        let call = |s3: aws_sdk_s3::Client| async move {
            let request = s3
                .complete_multipart_upload()
                .bucket(&self.bucket)
                .key(self.full_key(upload.key))
                .upload_id(id)
                .multipart_upload(parts.clone())
                .if_none_match("*")
                .set_expected_bucket_owner(upload.owner.clone());
            let answer = request
                .customize()
                .config_override(without_retries())
                .send()
                .await;
            let done = answer.map(drop);
            done.map_err(|error| classify_miss(PUT, &error))
        };
        self.in_region(call).await
    }

    /// Writes the object to the file. A body that breaks off is gone on with where it broke, if the object is still the same.
    pub(in crate::store) async fn get_file(
        &self,
        key: &str,
        to: &Path,
        most: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let file = create_empty_file(to).map_err(|error| unwritable(to, &error));
        let mut download = Download {
            path: to,
            file: file.map_err(|failure| self.store_error(key, GET, failure))?,
            digest: Sha256::new(),
            bytes: 0,
            most,
            etag: None,
        };
        let received = self.receive(key, &mut download).await;
        if received.is_err() {
            let _ = fs::remove_file(to);
        }
        match received {
            Ok(()) => Ok(Some(download.digest.finalize().to_vec())),
            Err(Unreceived::Failed(failure)) if is_absent(&failure) => Ok(None),
            Err(why) => Err(self.receive_error(key, most, why)),
        }
    }

    /// Appends to the file what it lacks of the object.
    pub(in crate::store) async fn get_rest(
        &self,
        key: &str,
        to: &mut File,
        most: u64,
    ) -> Result<bool, StoreError> {
        let bytes = to.seek(SeekFrom::End(0));
        let copied = bytes.and_then(|bytes| Ok((to.try_clone()?, bytes)));
        let copied = copied.map_err(|error| unwritable(Path::new(key), &error));
        let (file, bytes) = copied.map_err(|failure| self.store_error(key, GET, failure))?;
        let mut download = Download {
            path: Path::new(key),
            file,
            digest: Sha256::new(),
            bytes,
            most,
            etag: None,
        };
        match self.receive(key, &mut download).await {
            Ok(()) => Ok(true),
            Err(Unreceived::Failed(failure)) if is_absent(&failure) => Ok(false),
            // There is nothing behind its last byte.
            Err(Unreceived::Failed(failure)) if is_out_of_range(&failure) => Ok(true),
            Err(why) => Err(self.receive_error(key, most, why)),
        }
    }

    fn receive_error(&self, key: &str, most: u64, why: Unreceived) -> StoreError {
        match why {
            Unreceived::Failed(failure) => self.store_error(key, GET, failure),
            Unreceived::TooLarge => StoreError::TooLarge {
                key: key.to_owned(),
                most,
            },
        }
    }

    async fn receive(&self, key: &str, download: &mut Download<'_>) -> Result<(), Unreceived> {
        let (mut attempt, mut broken) = (0, None);
        loop {
            let before = download.bytes;
            let failure = match self.receive_rest(key, download).await {
                Ok(()) => return Ok(()),
                Err(Unreceived::Failed(failure)) => failure,
                Err(why) => return Err(why),
            };
            // Nothing is behind the byte at which the last body broke off: it failed at its end, and that is why.
            if is_out_of_range(&failure)
                && let Some(broken) = broken
            {
                return Err(Unreceived::Failed(broken));
            }
            let is_further = download.bytes > before;
            attempt = if is_further { 1 } else { attempt + 1 };
            if !is_passing(&failure) || attempt >= ATTEMPTS {
                return Err(failure.into());
            }
            if is_further {
                broken = Some(failure);
            }
            wait_before_retry(attempt).await;
        }
    }

    async fn receive_rest(&self, key: &str, download: &mut Download<'_>) -> Result<(), Unreceived> {
        let (etag, from) = (download.etag.clone(), download.bytes);
        let call = |s3: aws_sdk_s3::Client| {
            let request = self.get_object(&s3, key);
            let request = match from {
                0 => request,
                from => request
                    .range(format!("bytes={from}-"))
                    .set_if_match(etag.clone()),
            };
            async move {
                let answer = request.send().await;
                answer.map_err(|error| classify_miss(GET, &error))
            }
        };
        let answer = self.in_region(call).await?;
        let left = answer
            .content_length
            .and_then(|bytes| u64::try_from(bytes).ok());
        if left.is_some_and(|left| left > download.most.saturating_sub(from)) {
            return Err(Unreceived::TooLarge);
        }
        if download.etag.is_none() {
            download.etag = answer.e_tag;
        }
        let mut body = answer.body;
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|error| broken_body_error(&error))?;
            if piece.len() as u64 > download.most.saturating_sub(download.bytes) {
                return Err(Unreceived::TooLarge);
            }
            let written = download.file.write_all(&piece);
            written.map_err(|error| unwritable(download.path, &error))?;
            download.digest.update(&piece);
            download.bytes += piece.len() as u64;
        }
        Ok(())
    }
}

/// True if the first byte that was asked for is behind the last (S3 API reference: `InvalidRange`).
fn is_out_of_range(failure: &Failure) -> bool {
    failure.code == "InvalidRange"
}

fn unreadable(file: &Path, error: &dyn std::fmt::Display) -> Failure {
    let message = format!("{} cannot be read: {error}", file.display());
    failure::local_failure(Class::Invalid, PUT, message)
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    let message = format!("could not write {}: {error}", file.display());
    failure::local_failure(Class::Invalid, GET, message)
}
