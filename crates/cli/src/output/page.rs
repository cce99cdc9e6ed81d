//! Pages for people: facts with their names, then sections with tables.

use std::env;
use std::io::{self, IsTerminal};

use super::table;
use crate::fault;

/// A page that is being written.
#[derive(Debug, Default)]
pub struct Page {
    facts: Vec<Fact>,
    sections: String,
}

#[derive(Debug)]
struct Fact {
    name: &'static str,
    value: String,
    is_alarm: bool,
}

impl Page {
    /// Adds a fact, unless there is nothing to say.
    pub fn fact(&mut self, name: &'static str, value: impl Into<String>) -> &mut Page {
        self.add(name, value.into(), false)
    }

    /// Adds a fact that somebody must look at, unless there is none.
    pub fn alarm(&mut self, name: &'static str, value: impl Into<String>) -> &mut Page {
        self.add(name, value.into(), true)
    }

    fn add(&mut self, name: &'static str, value: String, is_alarm: bool) -> &mut Page {
        if !value.is_empty() {
            self.facts.push(Fact { name, value, is_alarm });
        }
        self
    }

    /// Adds a table under a title, unless it is empty.
    pub fn section<'h>(
        &mut self,
        title: &str,
        header: impl IntoIterator<Item = &'h str>,
        rows: Vec<Vec<String>>,
    ) -> &mut Page {
        if !rows.is_empty() {
            let body = table::list(header, rows);
            self.sections.push_str(&format!("\n{title}\n"));
            for line in body.lines() {
                self.sections.push_str(&format!("  {line}\n"));
            }
        }
        self
    }

    /// The text of the page; alarms are red where colours are welcome.
    pub fn text(&self) -> String {
        let width = self.facts.iter().map(|fact| fact.name.len()).max().unwrap_or(0);
        let colours = io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none();
        let mut text = String::new();
        for Fact { name, value, is_alarm } in &self.facts {
            // Later lines of a value stand below its first one.
            let value = fault::printable(value).replace('\n', &format!("\n{}", " ".repeat(width + 2)));
            let value = if *is_alarm && colours { format!("\u{1b}[31m{value}\u{1b}[0m") } else { value };
            text.push_str(&format!("{name:width$}  {value}\n"));
        }
        text + &self.sections
    }
}
