//! The HTTP client of what speaks to servers elsewhere: TLS by rustls with ring, as everywhere in this workspace.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{Client, redirect};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// Root certificates are read once: there are many, and a client is made for each model and each server.
static TLS: OnceLock<Result<ClientConfig, String>> = OnceLock::new();

/// A client that follows no redirection, since keys in headers would go along.
pub(crate) fn client(connect_timeout: Duration) -> Result<Client, String> {
    let client = Client::builder()
        .tls_backend_preconfigured(TLS.get_or_init(tls).clone()?)
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
    // The crate `genai` brings HTTP/2.
    let protocols: &[&[u8]] = if cfg!(feature = "genai") { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}
