//! The one error of this crate: what is wrong, in which field, at which character, and what to write instead.

use std::fmt;
use std::ops::Range;

/// Why a spec was refused.
///
/// It is opaque so that it can grow; ask it with the predicates and accessors.
///
/// ```
/// use punctual_spec::Spec;
///
/// let error = Spec::new().cron("0 25 * * *").compile().unwrap_err();
/// assert_eq!(error.to_string(), "Hour is not in range [0-23], found `25`");
/// assert_eq!(error.field(), "cron[0].hour");
/// assert_eq!(error.span(), Some(2..4));
/// assert!(error.is_syntax());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    kind: Kind,
    message: String,
    field: String,
    text: Option<String>,
    span: Option<Range<usize>>,
    help: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Syntax,
    Value,
    Zone,
    Calendar,
    Limit,
}

impl Error {
    fn new(kind: Kind, message: impl Into<String>) -> Error {
        let message = message.into();
        Error(Box::new(Inner { kind, message, field: String::new(), text: None, span: None, help: None }))
    }

    /// The text does not follow its grammar.
    pub(crate) fn syntax(message: impl Into<String>) -> Error {
        Error::new(Kind::Syntax, message)
    }

    /// A value is outside of what it may be, or two of them contradict each other.
    pub(crate) fn value(message: impl Into<String>) -> Error {
        Error::new(Kind::Value, message)
    }

    pub(crate) fn zone(message: impl Into<String>) -> Error {
        Error::new(Kind::Zone, message)
    }

    pub(crate) fn calendar(message: impl Into<String>) -> Error {
        Error::new(Kind::Calendar, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Error {
        Error::new(Kind::Limit, message)
    }

    pub(crate) fn at(mut self, span: Range<usize>) -> Error {
        self.0.span = Some(span);
        self
    }

    /// Keeps the text that the span points into.
    pub(crate) fn in_text(self, text: &str) -> Error {
        if self.0.text.is_none() { self.retold_in(text) } else { self }
    }

    /// Replaces the text that the span points into, when a part was read on its own.
    pub(crate) fn retold_in(mut self, text: &str) -> Error {
        self.0.text = Some(text.to_owned());
        // What is missing at the end is pointed at there, so the span always lies in the text.
        let end = text.len();
        self.0.span = self.0.span.map(|span| span.start.min(end)..span.end.min(end));
        self
    }

    /// Says where the fault is, from the inside out: `minute`, then `cron[0]`.
    pub(crate) fn in_field(mut self, field: &str) -> Error {
        let separator = if self.0.field.is_empty() { "" } else { "." };
        self.0.field = format!("{field}{separator}{}", self.0.field);
        self
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Error {
        self.0.help = Some(help.into());
        self
    }

    /// Whether a text does not follow its grammar.
    ///
    /// ```
    /// use punctual_spec::Spec;
    /// assert!(Spec::new().cron("0 0 * *").compile().unwrap_err().is_syntax());
    /// ```
    pub fn is_syntax(&self) -> bool {
        self.0.kind == Kind::Syntax
    }

    /// Whether a value is outside of what it may be, or contradicts another.
    ///
    /// ```
    /// use punctual_spec::{Interval, Spec};
    /// use jiff::SignedDuration;
    /// let spec = Spec::new().interval(Interval::every(SignedDuration::ZERO));
    /// assert!(spec.compile().unwrap_err().is_value());
    /// ```
    pub fn is_value(&self) -> bool {
        self.0.kind == Kind::Value
    }

    /// Whether a time zone is unknown, refused or unreadable.
    ///
    /// ```
    /// use punctual_spec::Spec;
    /// assert!(Spec::new().zone("Mars/Olympus").compile().unwrap_err().is_zone());
    /// ```
    pub fn is_zone(&self) -> bool {
        self.0.kind == Kind::Zone
    }

    /// Whether a named calendar is unknown.
    ///
    /// ```
    /// use punctual_spec::{CalendarRule, Spec};
    /// let spec = Spec::new().cron("@daily").calendar_rule(CalendarRule::exclude("holidays"));
    /// assert!(spec.compile().unwrap_err().is_unknown_calendar());
    /// ```
    pub fn is_unknown_calendar(&self) -> bool {
        self.0.kind == Kind::Calendar
    }

    /// Whether the spec is larger or more costly than a bound of [`limits`](crate::limits) allows.
    ///
    /// ```
    /// use punctual_spec::Spec;
    /// let long = format!("{} 0 * * *", "0,".repeat(5000));
    /// assert!(Spec::new().cron(long).compile().unwrap_err().is_limit());
    /// ```
    pub fn is_limit(&self) -> bool {
        self.0.kind == Kind::Limit
    }

    /// The part of the spec at fault, such as `cron[0].day_of_month` or `interval[2].phase`; empty if it is the whole.
    ///
    /// ```
    /// use punctual_spec::Spec;
    /// let error = Spec::new().cron("@daily").cron("0 0 32 * *").compile().unwrap_err();
    /// assert_eq!(error.field(), "cron[1].day_of_month");
    /// ```
    pub fn field(&self) -> &str {
        &self.0.field
    }

    /// The text at fault, as it was given.
    ///
    /// ```
    /// use punctual_spec::Spec;
    /// let error = Spec::new().cron("0 0 32 * *").compile().unwrap_err();
    /// assert_eq!(error.text(), Some("0 0 32 * *"));
    /// ```
    pub fn text(&self) -> Option<&str> {
        self.0.text.as_deref()
    }

    /// The bytes of [`text`](Error::text) at fault.
    ///
    /// ```
    /// use punctual_spec::Spec;
    /// let error = Spec::new().cron("0 0 32 * *").compile().unwrap_err();
    /// assert_eq!(error.span(), Some(4..6));
    /// ```
    pub fn span(&self) -> Option<Range<usize>> {
        self.0.span.clone()
    }

    /// What to write instead, where that can be guessed.
    ///
    /// ```
    /// use punctual_spec::Spec;
    /// let error = Spec::new().cron("0 0 L * *").compile().unwrap_err();
    /// assert_eq!(error.help(), Some("`L`, `W`, `#` and `?` belong to the quartz dialect"));
    /// ```
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// The whole story for a terminal: the text, a caret under the fault, the message and the help.
    ///
    /// ```
    /// use punctual_spec::Spec;
    /// let error = Spec::new().cron("0 25 * * *").compile().unwrap_err();
    /// assert_eq!(error.report(), "\
    /// 0 25 * * *
    ///   ^^ Hour is not in range [0-23], found `25`");
    /// ```
    pub fn report(&self) -> String {
        let mut report = match (&self.0.text, &self.0.span) {
            (Some(text), Some(span)) => pointed(text, span, &self.0.message),
            _ => self.0.message.clone(),
        };
        if let Some(help) = &self.0.help {
            report.push_str("\nhelp: ");
            report.push_str(help);
        }
        report
    }
}

/// What was found, for a message: quoted, and cut where nobody would read on.
pub(crate) fn quoted(found: &str) -> String {
    const LETTERS_MAX: usize = 40;
    match found.char_indices().nth(LETTERS_MAX) {
        Some((end, _)) => format!("`{}…`", &found[..end]),
        None => format!("`{found}`"),
    }
}

fn pointed(text: &str, span: &Range<usize>, message: &str) -> String {
    // Control characters would break the line that the caret counts on.
    let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let columns = |bytes: Range<usize>| text.get(bytes).map_or(0, |part| part.chars().count());
    let before = columns(0..span.start.min(text.len()));
    let under = columns(span.start..span.end.min(text.len())).max(1);
    format!("{shown}\n{}{} {message}", " ".repeat(before), "^".repeat(under))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}
