//! The cryptography of HTTPS.

/// Makes `ring` the provider of this process, if none was chosen before: `reqwest` comes without
/// one here, because the node's other clients have `ring` already.
pub(crate) fn prepare() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have been first; then there is one.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}
