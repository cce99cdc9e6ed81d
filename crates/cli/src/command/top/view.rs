//! The picture of the live view.

use std::env;

use punctual_api::v1;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table};

use super::history::{History, Stretch};
use super::rows;

/// Everything that is in the picture.
#[derive(Debug, Default)]
pub struct Picture {
    pub address: String,
    pub info: Option<v1::InfoResponse>,
    pub stats: Option<v1::StatsResponse>,
    pub history: History,
    /// Why there is no answer, while there is none.
    pub trouble: Option<String>,
    /// The picture is held.
    pub held: bool,
    /// The table that scrolls.
    pub focus: Focus,
    /// Rows of each table that are scrolled past.
    pub offsets: [usize; 2],
}

/// The tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    #[default]
    Queues,
    Runs,
}

impl Picture {
    /// Scrolls the chosen table, as far as it has rows.
    pub fn scroll(&mut self, rows: isize) {
        let stats = self.stats.as_ref();
        let count = stats.map_or(0, |stats| match self.focus {
            Focus::Queues => stats.queues.len(),
            Focus::Runs => stats.longest.len(),
        });
        let offset = &mut self.offsets[self.focus as usize];
        *offset = offset.saturating_add_signed(rows).min(count.saturating_sub(1));
    }

    /// Chooses the other table.
    pub fn turn(&mut self) {
        self.focus = match self.focus {
            Focus::Queues => Focus::Runs,
            Focus::Runs => Focus::Queues,
        };
    }

    pub fn draw(&self, frame: &mut Frame<'_>) {
        let [head, numbers, queues, runs, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(6),
            Constraint::Fill(2),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(self.head(), head);
        let nothing = v1::StatsResponse::default();
        let stats = self.stats.as_ref().unwrap_or(&nothing);
        self.numbers(frame, numbers, stats);
        let table = (Focus::Queues, "queues", &rows::QUEUE_HEADER[..], rows::queues(stats));
        self.table(frame, queues, table, &[16, 7, 8, 8, 12, 14, 8]);
        let table = (Focus::Runs, "longest runs", &rows::RUN_HEADER[..], rows::runs(stats));
        self.table(frame, runs, table, &[10, 16, 26, 8, 12]);
        frame.render_widget(
            Line::from("q ends  p holds  Tab chooses a table  ↑ ↓ scroll").style(faint()),
            foot,
        );
    }

    fn head(&self) -> Line<'_> {
        let (node, version) = match &self.info {
            Some(info) => (info.node_id.as_str(), format!("{}, {}", info.version, info.store)),
            None => ("punctual", String::new()),
        };
        let mut spans = vec![Span::styled(node.to_owned(), bold())];
        if !version.is_empty() {
            spans.push(Span::raw(format!(" ({version})")));
        }
        spans.push(Span::raw(format!(" at {}", self.address)));
        if let Some(stats) = &self.stats {
            spans.push(Span::raw(format!("  up {}", rows::up(stats))));
        }
        spans.push(Span::raw("  "));
        spans.push(match (&self.trouble, &self.stats) {
            (Some(trouble), _) => Span::styled(format!("{trouble}; asking again"), alarming()),
            (None, None) => Span::styled("asking", faint()),
            (None, Some(_)) => Span::styled("ready", fine()),
        });
        if self.held {
            spans.push(Span::styled("  held", bold()));
        }
        Line::from(spans)
    }

    fn numbers(&self, frame: &mut Frame<'_>, area: Rect, stats: &v1::StatsResponse) {
        let [starts, lateness, curve] =
            Layout::horizontal([Constraint::Fill(3), Constraint::Length(34), Constraint::Fill(2)])
                .areas(area);
        let others = self.history.not_started_rates();
        // The sum of nothing would be a negative zero.
        let total = others.iter().fold(0.0, |total, (_, rate)| total + rate);
        let others: Vec<String> = others.iter().map(|(word, rate)| format!("{word} {rate:.1}/s")).collect();
        let v1::StatsResponse { running_count, call_count, timer_count, quarantined_count, .. } = stats;
        let broken = format!("{quarantined_count} quarantined");
        let lines = vec![
            Line::from(vec![
                Span::styled(format!("{:.1}/s started", self.history.started_rate()), bold()),
                Span::raw(format!("  {total:.1}/s not started")),
            ]),
            Line::from(others.join("  ")),
            Line::from(format!(
                "{running_count} running  {call_count} calls in flight  {timer_count} timers"
            )),
            Line::from(Span::styled(broken, if *quarantined_count > 0 { alarming() } else { faint() })),
        ];
        frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" starts ")), starts);
        let mut lines = vec![Line::from(format!("{:12}{:>9}{:>9}", "", "p50", "p99")).style(faint())];
        for stretch in [Stretch::Interval, Stretch::Minute] {
            let (late, length) = (self.history.lateness(stretch), self.history.length(stretch));
            let name = format!("last {:.0} s", length.as_secs_f64());
            lines.push(Line::from(format!("{name:12}{:>9}{:>9}", late.text(0.5), late.text(0.99))));
        }
        frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" lateness ")), lateness);
        // The newest is at the right edge.
        let width = usize::from(curve.width.saturating_sub(2));
        let rates = self.history.started_rates();
        let latest = &rates[rates.len().saturating_sub(width)..];
        let title = format!(" starts/s, at most {} ", latest.iter().max().copied().unwrap_or(0));
        frame.render_widget(Sparkline::default().data(latest).block(Block::bordered().title(title)), curve);
    }

    fn table(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        (focus, title, header, rows): (Focus, &str, &[&'static str], Vec<Vec<String>>),
        widths: &[u16],
    ) {
        let (count, offset) = (rows.len(), self.offsets[focus as usize].min(rows.len().saturating_sub(1)));
        let title = if count == 0 { format!(" no {title} ") } else { format!(" {title}: {count} ") };
        let block = Block::bordered().title(title);
        let block =
            if self.focus == focus { block.border_style(bold()) } else { block.border_style(faint()) };
        let widths = widths.iter().map(|width| Constraint::Length(*width)).chain([Constraint::Fill(1)]);
        let table = Table::new(rows.into_iter().skip(offset).map(Row::new), widths)
            .header(Row::new(header.iter().copied()).style(faint()))
            .block(block);
        frame.render_widget(table, area);
    }
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn fine() -> Style {
    coloured(Color::Green)
}

fn alarming() -> Style {
    coloured(Color::Red)
}

/// Colours only where they are welcome.
fn coloured(colour: Color) -> Style {
    if env::var_os("NO_COLOR").is_none() { Style::new().fg(colour) } else { bold() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(picture: &Picture, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| picture.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let line = |row: u16| (0..width).map(|column| buffer[(column, row)].symbol()).collect::<String>();
        (0..height).map(|row| line(row).trim_end().to_owned() + "\n").collect()
    }

    fn queue(name: &str) -> v1::QueueDescription {
        let queue =
            v1::Queue { queue: name.into(), concurrency_max: Some(3), paused: true, ..Default::default() };
        v1::QueueDescription { queue: Some(queue), queued_count: 12, ..Default::default() }
    }

    #[test]
    fn the_picture_has_queues_runs_and_trouble() {
        let mut picture = Picture { address: "http://here".into(), ..Picture::default() };
        assert!(drawn(&picture, 100, 24).contains("punctual at http://here  asking"));
        let run = v1::Run {
            run_id: "7".into(),
            handler: "send".into(),
            queue: "mail".into(),
            ..Default::default()
        };
        let queues = vec![queue("first"), queue("second\u{1b}[2J")];
        let stats =
            v1::StatsResponse { queues, longest: vec![run], quarantined_count: 1, ..Default::default() };
        picture.history.add(&stats);
        picture.stats = Some(stats);
        picture.trouble = Some("no server".into());
        let text = drawn(&picture, 120, 30);
        for part in
            ["queues: 2", "first", "second\u{fffd}[2J", "paused", "3 at a time", "12", "send on queue mail"]
        {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(text.contains("no server; asking again") && text.contains("1 quarantined"), "{text}");

        picture.scroll(1);
        assert!(!drawn(&picture, 120, 30).contains("first  "), "it is scrolled past");
        picture.scroll(100);
        assert_eq!(picture.offsets, [1, 0], "the last row stays");
        picture.turn();
        picture.scroll(-1);
        assert_eq!((picture.focus, picture.offsets), (Focus::Runs, [1, 0]));
    }

    #[test]
    fn it_fits_into_any_window() {
        let stats = v1::StatsResponse { queues: vec![queue("a"); 50], ..Default::default() };
        let picture = Picture { stats: Some(stats), ..Picture::default() };
        for (width, height) in [(1, 1), (10, 3), (40, 8), (300, 100)] {
            drawn(&picture, width, height);
        }
    }
}
