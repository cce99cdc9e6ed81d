//! Templates take any text without harm: they are refused with a position, or filled in.

use punctual_actions::{Context, probe};

/// A small generator of numbers that look random, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn text(&mut self, pieces: &[&str]) -> String {
        (0..self.below(12)).map(|_| pieces[self.below(pieces.len())]).collect()
    }
}

const PIECES: [&str; 24] = [
    "{",
    "}",
    "{{",
    "}}",
    "{{{{",
    "input",
    "{{input}}",
    "{{ attempt }}",
    "{{run_id}}",
    "{{last_result}}",
    "ü",
    "\u{10ffff}",
    "\0",
    "\n",
    "\"",
    "\\",
    " ",
    "a",
    "{{nope}}",
    "{{nominal_time}}",
    "%",
    "\r\n",
    "{{schedule_id}}",
    "\u{feff}",
];

#[test]
fn random_templates_are_refused_or_filled_in() {
    let mut numbers = Numbers(7);
    let (mut filled_count, mut refused_count) = (0, 0);
    for _ in 0..50_000 {
        let text = numbers.text(&PIECES);
        let context = Context {
            schedule_id: numbers.text(&PIECES),
            run_id: numbers.text(&PIECES),
            input: (numbers.below(2) == 0).then(|| numbers.text(&PIECES).into_bytes()),
            last_result: (numbers.below(2) == 0).then(|| vec![0xff; numbers.below(4)]),
            ..Context::default()
        };
        match probe(&text, &context) {
            Ok([_, url, _]) => {
                filled_count += 1;
                let literal = text.contains(['"', '\\', ' ', '\n']);
                assert!(literal || !url.contains(['"', ' ', '\n']), "{text:?}: {url:?}");
            }
            Err(reason) => {
                refused_count += 1;
                assert!(reason.starts_with("byte "), "{text:?}: {reason}");
            }
        }
    }
    assert!(filled_count > 1_000 && refused_count > 1_000, "{filled_count} and {refused_count}");
}

#[test]
fn bodies_stay_json_whatever_is_filled_in() {
    let mut numbers = Numbers(11);
    for _ in 0..20_000 {
        let context = Context {
            schedule_id: numbers.text(&PIECES),
            input: Some(numbers.text(&PIECES).into_bytes()),
            last_result: Some((0..numbers.below(20)).map(|_| numbers.below(256) as u8).collect()),
            ..Context::default()
        };
        let text = r#"{"id":"{{schedule_id}}","input":{{input}},"last":{{last_result}},"nominal":"{{nominal_time}}"}"#;
        let [body, _, _] = probe(text, &context).unwrap();
        let body: serde_json::Value =
            serde_json::from_str(&body).unwrap_or_else(|error| panic!("{body}: {error}"));
        assert_eq!(body["id"], context.schedule_id);
    }
}
