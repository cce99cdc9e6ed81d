//! A token is good for one run, one purpose and a while, and only if nobody touched it.

use punctual_actions::{Claim, Signer, TokenError};

fn claim() -> Claim {
    Claim { purpose: "callback".to_owned(), namespace: "mail/ü".to_owned(), run: -7, expires: 1_000 }
}

#[test]
fn what_was_signed_is_read_back() {
    let signer = Signer::new([7; 32]);
    for (namespace, run) in
        [("", 0), ("mail", i64::MAX), ("ünïcode", i64::MIN), ("x".repeat(500).as_str(), 1)]
    {
        let claim = Claim { namespace: namespace.to_owned(), run, ..claim() };
        let token = signer.sign(&claim);
        assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{token}");
        assert_eq!(signer.verify(&token, "callback", 999), Ok(claim));
    }
    assert!(signer.sign(&Claim { namespace: "mail".to_owned(), ..claim() }).len() < 100);
}

#[test]
fn a_token_that_was_touched_is_not_good() {
    let signer = Signer::new([7; 32]);
    let token = signer.sign(&claim());
    for index in 0..token.len() {
        for letter in b"Aa0_-.\x7f" {
            let mut bytes = token.clone().into_bytes();
            if bytes[index] == *letter {
                continue;
            }
            bytes[index] = *letter;
            let touched = String::from_utf8(bytes).unwrap();
            assert!(signer.verify(&touched, "callback", 0).is_err(), "{touched}");
        }
    }
    for length in 0..token.len() {
        assert!(signer.verify(&token[..length], "callback", 0).is_err(), "{length}");
    }
    for longer in [format!("{token}A"), format!("{token}="), format!(" {token}"), "x".repeat(1_000_000)] {
        assert!(signer.verify(&longer, "callback", 0).is_err());
    }
}

#[test]
fn tokens_expire() {
    let signer = Signer::new([7; 32]);
    let token = signer.sign(&claim());
    assert!(signer.verify(&token, "callback", 1_000).is_ok());
    assert_eq!(signer.verify(&token, "callback", 1_001), Err(TokenError::Expired));
}

#[test]
fn tokens_are_for_one_purpose_and_one_secret() {
    let token = Signer::new([7; 32]).sign(&claim());
    assert_eq!(Signer::new([7; 32]).verify(&token, "login", 0), Err(TokenError::WrongPurpose));
    assert_eq!(Signer::new([8; 32]).verify(&token, "callback", 0), Err(TokenError::Forged));
    // Purpose and namespace do not run into each other.
    let other = Claim { purpose: "callbackm".to_owned(), namespace: "ail/ü".to_owned(), ..claim() };
    assert_ne!(Signer::new([7; 32]).sign(&other), token);
}

#[test]
fn outsiders_read_the_same_in_every_case() {
    let errors = [TokenError::Malformed, TokenError::Forged, TokenError::WrongPurpose, TokenError::Expired];
    assert!(errors.iter().all(|error| error.to_string() == "token is not valid"));
}
