//! Tokens that say "this report is for that run": signed by us, readable by nobody who need not, worth nothing once expired.
//!
//! A token is `p1_` and the base64url of the claim's bytes followed by their HMAC-SHA-256. The prefix is signed too, so that
//! another version of the layout cannot be mistaken for this one.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::base64url;
use crate::limits::TOKEN_BYTES_MAX;

const PREFIX: &str = "p1_";
const MAC_BYTES: usize = 32;

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// What the token is good for, such as `callback`; at most 255 bytes.
    pub purpose: String,
    /// The namespace of the run.
    pub namespace: String,
    /// The key of the run.
    pub run: i64,
    /// The last second, counted from 1970, in which the token is good.
    pub expires: i64,
}

/// Why a token is not good. Outsiders read the same message in every case; which one it is, is for our logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not a token of ours.
    #[error("token is not valid")]
    Malformed,
    /// Changed, or signed with another secret.
    #[error("token is not valid")]
    Forged,
    /// Good for something else.
    #[error("token is not valid")]
    WrongPurpose,
    /// No longer good.
    #[error("token is not valid")]
    Expired,
}

/// Signs and verifies tokens with one secret.
#[derive(Clone)]
pub struct Signer {
    keyed: Hmac<Sha256>,
}

impl Signer {
    /// A signer with this secret, which must be random.
    pub fn new(secret: [u8; 32]) -> Signer {
        let keyed = Hmac::new_from_slice(&secret).expect("HMAC takes a key of any length");
        Signer { keyed }
    }

    /// A token that says this.
    ///
    /// ```
    /// use punctual_actions::{Claim, Signer};
    ///
    /// let signer = Signer::new([7; 32]);
    /// let claim = Claim { purpose: "callback".into(), namespace: "mail".into(), run: 42, expires: 1_000 };
    /// let token = signer.sign(&claim);
    /// assert_eq!(signer.verify(&token, "callback", 1_000), Ok(claim));
    /// assert!(signer.verify(&token, "callback", 1_001).is_err());
    /// ```
    ///
    /// # Panics
    /// If the purpose has more than 255 bytes: purposes are words of ours.
    pub fn sign(&self, claim: &Claim) -> String {
        let purpose_length = u8::try_from(claim.purpose.len());
        let purpose_length =
            purpose_length.unwrap_or_else(|_| panic!("purpose {:?} is too long", claim.purpose));
        let mut bytes = Vec::with_capacity(17 + claim.purpose.len() + claim.namespace.len() + MAC_BYTES);
        bytes.extend_from_slice(&claim.run.to_be_bytes());
        bytes.extend_from_slice(&claim.expires.to_be_bytes());
        bytes.push(purpose_length);
        bytes.extend_from_slice(claim.purpose.as_bytes());
        bytes.extend_from_slice(claim.namespace.as_bytes());
        let mac = self.mac(&bytes).finalize().into_bytes();
        bytes.extend_from_slice(&mac);
        format!("{PREFIX}{}", base64url::encode(&bytes))
    }

    /// What a token says, if we signed it for this purpose and it has not expired by `now`, in seconds from 1970.
    pub fn verify(&self, token: &str, purpose: &str, now: i64) -> Result<Claim, TokenError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::Malformed);
        }
        let text = token.strip_prefix(PREFIX).ok_or(TokenError::Malformed)?;
        let bytes = base64url::decode(text).ok_or(TokenError::Malformed)?;
        let (claimed, mac) = bytes.split_last_chunk::<MAC_BYTES>().ok_or(TokenError::Malformed)?;
        // Compares in constant time, and before anything in the token is believed.
        self.mac(claimed).verify_slice(mac).map_err(|_| TokenError::Forged)?;
        let claim = read(claimed).ok_or(TokenError::Malformed)?;
        if claim.purpose != purpose {
            return Err(TokenError::WrongPurpose);
        }
        if claim.expires < now {
            return Err(TokenError::Expired);
        }
        Ok(claim)
    }

    fn mac(&self, bytes: &[u8]) -> Hmac<Sha256> {
        self.keyed.clone().chain_update(PREFIX.as_bytes()).chain_update(bytes)
    }
}

fn read(bytes: &[u8]) -> Option<Claim> {
    let (run, rest) = bytes.split_first_chunk()?;
    let (expires, rest) = rest.split_first_chunk()?;
    let (purpose_length, rest) = rest.split_first()?;
    let (purpose, namespace) = rest.split_at_checked(usize::from(*purpose_length))?;
    Some(Claim {
        purpose: String::from_utf8(purpose.to_vec()).ok()?,
        namespace: String::from_utf8(namespace.to_vec()).ok()?,
        run: i64::from_be_bytes(*run),
        expires: i64::from_be_bytes(*expires),
    })
}
