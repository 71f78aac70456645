//! The HTTP client: TLS by rustls with ring.

use std::{sync::Arc, time::Duration};

use reqwest::{Client, redirect};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// A client that follows no redirection, since keys in headers would go along.
pub(super) fn client(connect_timeout: Duration) -> Result<Client, String> {
    let client = Client::builder()
        .tls_backend_preconfigured(tls()?)
        .redirect(redirect::Policy::none())
        .connect_timeout(connect_timeout)
        .tcp_nodelay(true)
        .build();
    client.map_err(|error| format!("the HTTP client cannot be set up: {error}"))
}

fn tls() -> Result<ClientConfig, String> {
    let builder = || {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())
    };
    let mut config = match builder()?.with_platform_verifier() {
        Ok(config) => config.with_no_client_auth(),
        Err(error) => {
            tracing::warn!(%error, "this system has no root certificates: only servers without TLS are reached");
            builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
