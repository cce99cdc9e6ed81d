//! The live view: takes the terminal, asks once a second, listens to keys, and gives the terminal back whatever happens.

use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use punctual_api::v1;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::view::Picture;
use crate::answer::Answer;
use crate::exit_code::ExitCode;
use crate::session::{Session, ask};
use crate::signals::Signals;

/// How often the server is asked.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long the keyboard is waited for before looking whether anybody still listens.
const KEY_WAIT: Duration = Duration::from_millis(250);

/// Rows of a page up or down.
const PAGE_ROWS: isize = 10;

/// What one question came to.
type Heard = Result<(v1::InfoResponse, v1::StatsResponse), String>;

/// Shows the server until the user has seen enough.
pub async fn live(session: Session) -> Result<Answer> {
    let mut signals = Signals::listen();
    let mut screen = Screen::take().context("cannot use the terminal")?;
    let (tell, mut heard) = mpsc::channel(1);
    let mut picture = Picture { address: session.address.clone(), ..Picture::default() };
    let asking = tokio::spawn(ask_on(session, tell));
    let mut keys = keys();
    loop {
        screen.0.draw(|frame| picture.draw(frame)).context("cannot draw on the terminal")?;
        tokio::select! {
            Some(heard) = heard.recv() => hear(&mut picture, heard),
            Some(event) = keys.recv() => if !is_next(&mut picture, &event) { break },
            () = signals.next() => break,
        }
    }
    asking.abort();
    drop(screen);
    Ok(Answer::silent(ExitCode::Answered))
}

/// The terminal, taken over; it is given back when this goes away. A panic gives it back, too.
struct Screen(DefaultTerminal);

impl Screen {
    fn take() -> io::Result<Screen> {
        ratatui::try_init().map(Screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Asks for ever, whether it is answered or not.
async fn ask_on(session: Session, tell: mpsc::Sender<Heard>) {
    let mut clock = tokio::time::interval(INTERVAL);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        clock.tick().await;
        let heard = ask_once(&session).await.map_err(|error| first_line(&error));
        if tell.send(heard).await.is_err() {
            return;
        }
    }
}

async fn ask_once(session: &Session) -> Result<(v1::InfoResponse, v1::StatsResponse)> {
    let info = ask!(session, server.info(v1::InfoRequest {}))?;
    let stats = ask!(session, server.stats(v1::StatsRequest {}))?;
    Ok((info, stats))
}

fn first_line(error: &anyhow::Error) -> String {
    let text = error.to_string();
    let text = text.lines().next().unwrap_or_default();
    text.split(", start one with").next().unwrap_or(text).to_owned()
}

fn hear(picture: &mut Picture, heard: Heard) {
    match heard {
        Err(trouble) => picture.trouble = Some(trouble),
        Ok((info, stats)) => {
            picture.trouble = None;
            if !picture.held {
                picture.history.add(&stats);
                picture.info = Some(info);
                picture.stats = Some(stats);
                picture.scroll(0);
            }
        }
    }
}

/// What the keyboard says, and that the window has another size. A thread of its own, since the keyboard cannot be awaited.
fn keys() -> mpsc::UnboundedReceiver<Event> {
    let (tell, keys) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while !tell.is_closed() {
            match event::poll(KEY_WAIT)
                .and_then(|there| if there { event::read().map(Some) } else { Ok(None) })
            {
                Ok(Some(event)) => {
                    let _ = tell.send(event);
                }
                Ok(None) => {}
                // Without a keyboard it is a picture that signals end.
                Err(_) => return,
            }
        }
    });
    keys
}

/// Does what a key says. False when it says that this is enough.
fn is_next(picture: &mut Picture, event: &Event) -> bool {
    let Event::Key(key) = event else { return true };
    if key.kind == KeyEventKind::Release {
        return true;
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
        KeyCode::Char('p' | ' ') => picture.held = !picture.held,
        KeyCode::Tab | KeyCode::BackTab => picture.turn(),
        KeyCode::Up | KeyCode::Char('k') => picture.scroll(-1),
        KeyCode::Down | KeyCode::Char('j') => picture.scroll(1),
        KeyCode::PageUp => picture.scroll(-PAGE_ROWS),
        KeyCode::PageDown => picture.scroll(PAGE_ROWS),
        KeyCode::Home => picture.scroll(isize::MIN),
        KeyCode::End => picture.scroll(isize::MAX),
        _ => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::crossterm::event::KeyEvent;

    fn press(picture: &mut Picture, code: KeyCode, modifiers: KeyModifiers) -> bool {
        is_next(picture, &Event::Key(KeyEvent::new(code, modifiers)))
    }

    #[test]
    fn keys_end_hold_and_scroll() {
        let stats = v1::StatsResponse { queues: vec![Default::default(); 5], ..Default::default() };
        let mut picture = Picture { stats: Some(stats), ..Picture::default() };
        assert!(press(&mut picture, KeyCode::Char('p'), KeyModifiers::NONE) && picture.held);
        assert!(press(&mut picture, KeyCode::Char('c'), KeyModifiers::NONE), "a letter alone is none");
        for (key, offset) in [(KeyCode::Down, 1), (KeyCode::End, 4), (KeyCode::Up, 3), (KeyCode::Home, 0)] {
            assert!(press(&mut picture, key, KeyModifiers::NONE));
            assert_eq!(picture.offsets[0], offset, "{key:?}");
        }
        assert!(!press(&mut picture, KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(!press(&mut picture, KeyCode::Char('q'), KeyModifiers::NONE));
    }

    #[test]
    fn what_is_held_stays_and_trouble_is_shown_all_the_same() {
        let mut picture = Picture { held: true, ..Picture::default() };
        hear(&mut picture, Ok(Default::default()));
        assert!(picture.stats.is_none());
        hear(&mut picture, Err("no server".into()));
        assert_eq!(picture.trouble.as_deref(), Some("no server"));
        picture.held = false;
        hear(&mut picture, Ok(Default::default()));
        assert!(picture.stats.is_some() && picture.trouble.is_none());
    }
}
