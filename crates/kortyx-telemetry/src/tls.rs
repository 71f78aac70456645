//! TLS for the HTTP clients.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// Trusts what the system trusts.
pub(crate) fn tls() -> Result<ClientConfig, String> {
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
