//! Settings: flag, environment, file, default, in this order; what makes no sense is refused by name.

use std::path::Path;

use punctual_server::{Config, Flags, LogFormat, Server, Source, StartError};

fn resolve(
    flags: &Flags,
    environment: &[(&str, &str)],
    file: &str,
) -> Result<punctual_server::Resolved, String> {
    let environment = |name: &str| {
        environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    Config::resolve(flags, &environment, Some((Path::new("p.toml"), file))).map_err(|error| error.to_string())
}

#[test]
fn the_nearest_word_counts() {
    let flags = Flags { worker_lease: Some("1m".into()), ..Flags::default() };
    let environment = [("PUNCTUAL_WORKER_LEASE", "2m"), ("PUNCTUAL_LOG", "json")];
    let file = "worker_lease = '3m'\nlog = 'text'\ndemo = true\nwatchers_max = 7";
    let resolved = resolve(&flags, &environment, file).unwrap();
    let config = &resolved.config;
    assert_eq!(config.worker_lease.as_secs(), 60);
    assert_eq!((config.log, config.demo, config.watchers_max), (LogFormat::Json, true, 7));
    let source = |name| resolved.settings.iter().find(|setting| setting.name == name).unwrap().source;
    assert_eq!(
        ["worker_lease", "log", "demo", "node"].map(source),
        [Source::Flag, Source::Environment, Source::File, Source::Default]
    );
    let shown = resolved.settings.iter().find(|setting| setting.name == "worker_lease").unwrap();
    assert_eq!(shown.value, "1m");
}

#[test]
fn what_is_shown_can_be_read_back() {
    let resolved = Config::resolve(&Flags::default(), &|_| None, None).unwrap();
    assert_eq!(resolved.config, Config::default());
    let file: String = resolved.settings.iter().map(|it| format!("{} = '{}'\n", it.name, it.value)).collect();
    assert_eq!(resolve(&Flags::default(), &[], &file).unwrap().config, Config::default());
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let bad = |file: &str| resolve(&Flags::default(), &[], file).unwrap_err();
    assert_eq!(
        bad("worker_leese = '1m'"),
        "p.toml: unknown setting `worker_leese`, did you mean `worker_lease`?"
    );
    assert_eq!(
        bad("run-retention = '1m'"),
        "p.toml: unknown setting `run-retention`, did you mean `run_retention`?"
    );
    assert_eq!(bad("qqqqqqqqqq = 1"), "p.toml: unknown setting `qqqqqqqqqq`");
    assert_eq!(
        bad("shutdown = '11m'"),
        "shutdown (from p.toml) is \"11m\", expected a length of time from 0s to 10m"
    );
    assert_eq!(
        bad("listen = [1]"),
        "listen (from p.toml) is \"array value\", expected an address and a port, such as 127.0.0.1:7233"
    );
    assert!(bad("a = \nb").starts_with("p.toml: "));
    for bad_line in [
        "demo = 'maybe'",
        "watchers_max = 0",
        "watchers_max = -1",
        "node = ''",
        "database = 'mysql:x'",
        "database = 'sqlite:'",
        "log_filter = 'a=b=c'",
        "worker_lease = '0s'",
    ] {
        assert!(resolve(&Flags::default(), &[], bad_line).is_err(), "{bad_line}");
    }
    let error = resolve(&Flags::default(), &[("PUNCTUAL_LISTEN", "here")], "").unwrap_err();
    assert!(error.starts_with("listen (from PUNCTUAL_LISTEN) is \"here\""), "{error}");
    let flags = Flags { insecure: Some("si".into()), ..Flags::default() };
    assert!(resolve(&flags, &[], "").unwrap_err().contains("--insecure"));
}

#[tokio::test]
async fn an_address_that_others_can_reach_is_refused_before_anything_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("never.db");
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let mut config = crate::bed::on_file(&file);
        config.listen = listen.parse().unwrap();
        let Err(error) = Server::start(config).await else { panic!("{listen} was accepted") };
        assert!(
            matches!(error, StartError::Exposed { .. }) && error.to_string().contains("--insecure"),
            "{error}"
        );
    }
    assert!(!file.exists());
    let mut config = crate::bed::config();
    (config.listen, config.insecure) = ("0.0.0.0:0".parse().unwrap(), true);
    let server = Server::start(config).await.unwrap();
    server.run(async {}).await.unwrap();
}
