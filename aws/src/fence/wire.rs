//! Where a fence stands in the way of a call: before each attempt is sent, and again where its first byte is written, since
//! finding an address, connecting and TLS lie between the two.

use super::Fence;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_http_client::{Builder, ConnectorBuilder};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector,
    http_client_fn,
};
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::BeforeTransmitInterceptorContextMut;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, Metadata};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::{Error, SdkBody};
use aws_smithy_types::config_bag::ConfigBag;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

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
        self.check()?;
        context.request_mut().add_extension(self.clone());
        Ok(())
    }
}

/// What the SDK sends its calls with, but that a write whose fence is shut by then is not written. Here and not in the
/// interceptor, because what looks at a body after that takes another one than its own for a stream.
pub(crate) fn client() -> SharedHttpClient {
    let https = Builder::new().build_with_connector_fn(|settings, components| {
        let mut connector = ConnectorBuilder::default()
            .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
            .proxy_config(ProxyConfig::from_env());
        connector.set_connector_settings(settings.cloned());
        connector.set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
        connector.build()
    });
    http_client_fn(move |settings, components| {
        SharedHttpConnector::new(Connector(https.http_connector(settings, components)))
    })
}

#[derive(Debug)]
struct Connector(SharedHttpConnector);

impl HttpConnector for Connector {
    fn call(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        if let Some(fence) = request.extension::<Fence>().cloned() {
            let body = request.body_mut();
            let inner = std::mem::replace(body, SdkBody::taken());
            *body = SdkBody::from_body_1_x(Guarded { inner, fence });
        }
        self.0.call(request)
    }
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
        match this.fence.check() {
            Ok(()) => Pin::new(&mut this.inner).poll_frame(context),
            Err(fenced) => Poll::Ready(Some(Err(fenced.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        Body::is_end_stream(&self.inner) && self.fence.check().is_ok()
    }

    /// Of a body without bytes a length would say that it need not be asked.
    fn size_hint(&self) -> SizeHint {
        let hint = Body::size_hint(&self.inner);
        if hint.exact() == Some(0) && self.fence.check().is_err() {
            return SizeHint::default();
        }
        hint
    }
}

#[cfg(all(test, feature = "store"))]
mod tests {
    use super::*;
    use crate::fence::Fenced;
    use aws_config::{BehaviorVersion, Region};
    use aws_credential_types::Credentials;
    use aws_smithy_runtime_api::client::interceptors::context::BeforeTransmitInterceptorContextRef;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    /// Shuts the fence after a write was let through, while its connection is made.
    #[derive(Debug)]
    struct Meanwhile(Fence);

    impl Intercept for Meanwhile {
        fn name(&self) -> &'static str {
            "meanwhile"
        }

        fn read_before_transmit(
            &self,
            _context: &BeforeTransmitInterceptorContextRef<'_>,
            _components: &RuntimeComponents,
            _config: &mut ConfigBag,
        ) -> Result<(), BoxError> {
            self.0.shut();
            Ok(())
        }
    }

    fn is_fenced(error: &(dyn std::error::Error + 'static)) -> bool {
        std::iter::successors(Some(error), |error| error.source())
            .any(<dyn std::error::Error>::is::<Fenced>)
    }

    #[tokio::test]
    async fn a_write_whose_fence_is_shut_while_it_connects_sends_nothing() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        for with_body in [true, false] {
            let fence = Fence::default();
            let config = aws_sdk_s3::Config::builder()
                .behavior_version(BehaviorVersion::v2026_01_12())
                .region(Region::new("us-east-1"))
                .endpoint_url(format!("http://{address}"))
                .credentials_provider(Credentials::new("AKID", "secret", None, None, "given"))
                .force_path_style(true)
                .http_client(client())
                .interceptor(fence.clone());
            let s3 = aws_sdk_s3::Client::from_conf(config.build());
            let meanwhile = Meanwhile(fence);
            let write = async {
                if with_body {
                    let put = s3.put_object().bucket("b").key("k");
                    let put = put.body(b"body".to_vec().into()).customize();
                    let put = put.interceptor(meanwhile).send().await;
                    is_fenced(&put.expect_err("a failure"))
                } else {
                    let delete = s3.delete_object().bucket("b").key("k").customize();
                    let delete = delete.interceptor(meanwhile).send().await;
                    is_fenced(&delete.expect_err("a failure"))
                }
            };
            let received = async {
                let (mut connection, _) = server.accept().await.unwrap();
                let mut received = Vec::new();
                connection.read_to_end(&mut received).await.unwrap();
                received
            };
            let (fenced, received) = tokio::join!(write, received);
            assert!(fenced, "with a body: {with_body}");
            assert_eq!(String::from_utf8_lossy(&received), "");
        }
    }

    #[test]
    fn what_is_not_known_to_be_a_read_is_a_write() {
        for read in [
            "DescribeVpcs",
            "GetObject",
            "HeadObject",
            "ListObjectsV2",
            "GetCallerIdentity",
        ] {
            assert!(is_read(read), "{read}");
        }
        for write in [
            "CreateVpc",
            "PutObject",
            "DeleteObject",
            "ReceiveMessage",
            "ChangeResourceRecordSets",
            "Listen",
            "Getaway",
            "",
        ] {
            assert!(!is_read(write), "{write}");
        }
    }
}
