//! What the SDK sends its calls with, and where a fence stands in the way of one: before each attempt is sent, and again where its
//! first byte is written, since finding an address, connecting and TLS lie between the two.

use super::{Fence, FenceState, LockLost, boot_clock_now};
use crate::authorities::Authorities;
use crate::causes::error_causes;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode};
use aws_smithy_http_client::{Builder, ConnectorBuilder};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector,
    http_client_fn,
};
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::BeforeTransmitInterceptorContextMut;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse, Metadata};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::{Error, SdkBody};
use aws_smithy_types::config_bag::ConfigBag;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Operations that change nothing, by how their names begin. What is not known to be a read is a write.
const READS: &[&str] = &["Describe", "Get", "Head", "List"];

/// True if an operation is known to change nothing.
fn is_read(operation: &str) -> bool {
    READS.iter().any(|read| {
        let rest = operation.strip_prefix(read).unwrap_or_default();
        rest.starts_with(|next: char| next.is_ascii_uppercase())
    })
}

impl Intercept for Fence {
    fn name(&self) -> &'static str {
        "fence"
    }

    /// Of every attempt, the SDK's own repetitions included, once it is signed.
    fn modify_before_transmit(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let call = config.load::<Metadata>();
        if call.is_some_and(|call| is_read(call.name())) {
            return Ok(());
        }
        if self.state() == FenceState::Closed {
            return Err(LockLost.into());
        }
        // A paused fence is waited for where the request is sent.
        context.request_mut().add_extension(self.clone());
        Ok(())
    }
}

/// Headers that every request to the metadata service of an instance has, and no other (EC2 user guide, IMDSv2).
const METADATA_HEADERS: &str = "x-aws-ec2-metadata-token";

/// Where the metadata services of instances and containers are, whose addresses no proxy reaches.
const LINK_LOCAL: &str = "http://169.254.";

/// What the SDK sends its calls with, but that a write whose fence is shut by then is not written. Here and not in the
/// interceptor, because what looks at a body after that takes another one than its own for a stream. Calls go through the proxy
/// of the environment, except those to a metadata service.
pub(crate) fn fenced_http_client(authorities: Option<&[u8]>) -> SharedHttpClient {
    let given = authorities.map(Authorities::from_pem);
    let authorities = given.unwrap_or_else(|| Authorities::of_system().clone());
    let proxied = https_client(&authorities, ProxyConfig::from_env);
    // Metadata services speak HTTP: no authorities to read, and none is trusted.
    let direct = Builder::new().build_http();
    http_client_fn(move |settings, components| {
        SharedHttpConnector::new(Connector {
            proxied: proxied.http_connector(settings, components),
            direct: direct.http_connector(settings, components),
            authorities: authorities.clone(),
        })
    })
}

/// The build of AWS-LC that TLS of the SDK uses: that of the rest of the program.
#[cfg(not(feature = "fips"))]
const CRYPTO: CryptoMode = CryptoMode::AwsLc;
#[cfg(feature = "fips")]
const CRYPTO: CryptoMode = CryptoMode::AwsLcFips;

/// A client that trusts these authorities and nobody else.
fn https_client(authorities: &Authorities, proxy: fn() -> ProxyConfig) -> SharedHttpClient {
    let mut trusted = TrustStore::empty();
    let pem = authorities.to_pem();
    if !pem.is_empty() {
        trusted = trusted.with_pem_certificate(pem);
    }
    // It cannot fail; if it did, the authorities of the system would be trusted.
    let trusted = TlsContext::builder().with_trust_store(trusted).build();
    Builder::new().build_with_connector_fn(move |settings, components| {
        let mut connector = ConnectorBuilder::default()
            .tls_provider(Provider::Rustls(CRYPTO))
            .proxy_config(proxy());
        if let Ok(trusted) = &trusted {
            connector = connector.tls_context(trusted.clone());
        }
        connector.set_connector_settings(settings.cloned());
        connector.set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
        connector.build()
    })
}

/// A request that waited longer behind a paused fence is not sent but repeated by the SDK, which signs it anew. AWS accepts signatures
/// for 5 minutes (AWS General Reference, "Signature Version 4 request lifetime").
const SIGNATURE_TIME: Duration = Duration::from_mins(1);

/// Why an attempt is repeated that was not sent.
const PAUSED: &str = "the lock could not be renewed for a while";

#[derive(Debug)]
struct Connector {
    proxied: SharedHttpConnector,
    direct: SharedHttpConnector,
    authorities: Authorities,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        if let Err(error) = self.authorities.check_address(request.uri()) {
            return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into())));
        }
        let connector = if is_for_metadata(&request) {
            &self.direct
        } else {
            &self.proxied
        };
        let Some(fence) = request.extension::<Fence>().cloned() else {
            return connector.call(request);
        };
        HttpConnectorFuture::new(send_when_open(connector.clone(), request, fence))
    }
}

fn is_for_metadata(request: &HttpRequest) -> bool {
    let mut headers = request.headers().iter();
    let mut has_header = || headers.any(|(name, _)| name.starts_with(METADATA_HEADERS));
    let uri = request.uri();
    uri.starts_with(LINK_LOCAL) || (uri.starts_with("http://") && has_header())
}

/// Sends a write as soon as the fence is open. If the fence closes while the request is on its way to its first byte, nothing was sent,
/// and it is sent again once the fence is reopened.
async fn send_when_open(
    connector: SharedHttpConnector,
    mut request: HttpRequest,
    fence: Fence,
) -> Result<HttpResponse, ConnectorError> {
    let signed = boot_clock_now();
    loop {
        let opened = fence.wait_until_open().await;
        opened.map_err(|lost| ConnectorError::other(lost.into(), None))?;
        if signed.plus_duration(SIGNATURE_TIME).remaining().is_zero() {
            return Err(ConnectorError::timeout(PAUSED.into()));
        }
        let again = request.try_clone();
        let body = request.body_mut();
        let inner = std::mem::replace(body, SdkBody::taken());
        *body = SdkBody::from_body_1_x(Guarded {
            inner,
            fence: fence.clone(),
        });
        let sent = connector.call(request).await;
        if !sent.as_ref().is_err_and(is_refused) || fence.state() == FenceState::Closed {
            return sent;
        }
        // A body that cannot be had twice is made anew by whoever repeats the attempt.
        request = again.ok_or_else(|| ConnectorError::timeout(PAUSED.into()))?;
    }
}

/// True if the fence kept the request from being sent.
fn is_refused(error: &ConnectorError) -> bool {
    error_causes(error)
        .iter()
        .any(|cause| cause.is::<LockLost>())
}

/// The body of a write. hyper asks it for its end and its bytes after there is a connection and before anything is
/// flushed: behind a fence it has bytes that cannot be had, so that not even the head of the request is sent.
struct Guarded {
    inner: SdkBody,
    fence: Fence,
}

impl Body for Guarded {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        match this.fence.check_open() {
            Ok(()) => Pin::new(&mut this.inner).poll_frame(context),
            Err(fenced) => Poll::Ready(Some(Err(fenced.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        Body::is_end_stream(&self.inner) && self.fence.check_open().is_ok()
    }

    /// Of a body without bytes a length would say that it need not be asked.
    fn size_hint(&self) -> SizeHint {
        let hint = Body::size_hint(&self.inner);
        if hint.exact() == Some(0) && self.fence.check_open().is_err() {
            return SizeHint::default();
        }
        hint
    }
}

#[cfg(test)]
#[path = "wire_test.rs"]
mod tests;
