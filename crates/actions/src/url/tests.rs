//! URLs that are read, those that are refused, and where redirects lead.

use super::*;

#[test]
fn urls_have_one_spelling() {
    let cases = [
        ("http://example.com", "http://example.com:80/"),
        ("HTTPS://Example.COM./a?b=c#d", "https://example.com:443/a?b=c"),
        ("https://example.com:8443?x", "https://example.com:8443/?x"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://[::ffff:127.0.0.1]/", "http://127.0.0.1:80/"),
        ("http://a_b.example-x.com/%20?q=%7B", "http://a_b.example-x.com:80/%20?q=%7B"),
        ("http://example.com/a@b:c", "http://example.com:80/a@b:c"),
    ];
    for (text, expected) in cases {
        assert_eq!(Url::parse(text).unwrap().to_string(), expected);
    }
}

#[test]
fn odd_urls_are_refused() {
    let cases = [
        "",
        "example.com",
        "//example.com",
        "ftp://example.com",
        "file:///etc/passwd",
        "http://",
        "http:///a",
        "http://user@example.com",
        "http://user:secret@example.com",
        "http://example.com:0",
        "http://example.com:",
        "http://example.com:99999",
        "http://example.com:+80",
        "http://exa mple.com",
        "http://example.com/a b",
        "http://example.com\\@127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0x7f000001/",
        "http://127.1/",
        "http://0177.0.0.1/",
        "http://127.0.0.1.5/",
        "http://1.2.3/",
        "http://0x/",
        "http://[::1",
        "http://::1/",
        "http://[fe80::1%25eth0]/",
        "http://a..b/",
        "http://.a/",
        "http://\u{ff11}27.0.0.1/",
        "http://ex%61mple.com/",
        "http://example.com/\r\nX: y",
        "http://exa\u{0}mple.com",
    ];
    for text in cases {
        assert!(Url::parse(text).is_err(), "{text}");
    }
}

#[test]
fn redirects_lead_where_the_standard_says() {
    let base = Url::parse("http://h/a/b/c?q").unwrap();
    let cases = [
        ("g", "http://h:80/a/b/g"),
        ("./g", "http://h:80/a/b/g"),
        ("g/", "http://h:80/a/b/g/"),
        ("/g", "http://h:80/g"),
        ("//other", "http://other:80/"),
        ("?y", "http://h:80/a/b/c?y"),
        ("", "http://h:80/a/b/c?q"),
        ("#s", "http://h:80/a/b/c?q"),
        (".", "http://h:80/a/b/"),
        ("..", "http://h:80/a/"),
        ("../g", "http://h:80/a/g"),
        ("../../../g", "http://h:80/g"),
        ("https://other:8443/x?u=http://y", "https://other:8443/x?u=http://y"),
        ("g?u=http://y", "http://h:80/a/b/g?u=http://y"),
        ("/x:y", "http://h:80/x:y"),
    ];
    for (location, expected) in cases {
        assert_eq!(base.join(location).unwrap().to_string(), expected, "{location}");
    }
    for location in ["javascript:alert(1)", "http://user@h/", "//0x7f.1/", "http:", "ftp://h/", "a b"] {
        assert!(base.join(location).is_err(), "{location}");
    }
}

#[test]
fn this_machine_by_name_needs_a_permission() {
    let url = Url::parse("http://api.localhost:1/").unwrap();
    assert!(url.refusal(&Rules::default()).is_some());
    assert!(url.refusal(&Rules { allow_private: true, ..Rules::default() }).is_none());
    assert!(Url::parse("http://localhost.example.com/").unwrap().refusal(&Rules::default()).is_none());
}

#[test]
fn encoding_leaves_nothing_that_means_something() {
    assert_eq!(percent_encode("a-b_c.d~1"), "a-b_c.d~1");
    assert_eq!(percent_encode("/?#&=%+ ü\n"), "%2F%3F%23%26%3D%25%2B%20%C3%BC%0A");
}
