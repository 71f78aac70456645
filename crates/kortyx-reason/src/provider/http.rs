//! The HTTP client: TLS by rustls with ring, as everywhere in this workspace.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{Client, redirect};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// How long a connection may take to be there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Root certificates are read once: there are many, and a client is made for each model.
static TLS: OnceLock<Result<ClientConfig, String>> = OnceLock::new();

/// A client that follows no redirection, since keys in headers would go along.
pub(super) fn client() -> Result<Client, String> {
    let client = Client::builder()
        .tls_backend_preconfigured(TLS.get_or_init(tls).clone()?)
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
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
            tracing::warn!(%error, "this system has no root certificates: only models without TLS are reached");
            builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
