//! The report in a terminal: reads keys, and draws the views until the user quits.

use super::arguments::{Arguments, is_standard};
use super::result_text::Output;
use crate::signals::run_before_end;
use anyhow::{Context, Error, anyhow};
use lockkeeper_report::{Key, Next, Simulation, TerminalReport};
use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use std::env;
use std::io::{IsTerminal, stdin, stdout};
use std::time::Duration;

/// Leaves the alternate screen and raw mode at the end, also after an error.
struct Restoration;

impl Drop for Restoration {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    ratatui::restore();
    // Nothing else can be done without a terminal.
    let _ = execute!(stdout(), Show);
}

/// Returns an error if the flags or the terminal do not permit the views.
pub(crate) fn check_usage(arguments: &Arguments) -> Result<(), Error> {
    if arguments.output != Output::Human {
        return Err(anyhow!(
            "--tui and --output json, csv or markdown exclude each other"
        ));
    }
    if arguments.report.as_deref().is_some_and(is_standard) {
        return Err(anyhow!(
            "--tui and --report - both write to stdout; give a file for the report"
        ));
    }
    let inputs = &arguments.inputs;
    let files = inputs.traces.iter().chain(&inputs.dumps);
    let mut files = files.chain(&inputs.mapping).chain(&arguments.configs);
    if files.any(|it| is_standard(it)) {
        return Err(anyhow!(
            "--tui reads keys from stdin, so a trace cannot be `-`; give a file"
        ));
    }
    let is_dumb = env::var_os("TERM").is_some_and(|it| it == "dumb");
    if is_dumb || !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(anyhow!(
            "--tui needs a terminal for stdin and stdout; --report FILE writes the same views to a file"
        ));
    }
    Ok(())
}

/// Shows the report until the user quits.
pub(crate) fn show(simulations: &[Simulation<'_>]) -> Result<(), Error> {
    let has_colors = env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
    let mut report = TerminalReport::new(simulations).with_colors(has_colors);
    // Dropped last. A panic restores the terminal before its message, too.
    let _restoration = Restoration;
    run_before_end(restore).context("cannot wait for signals")?;
    let mut terminal = ratatui::try_init().context("cannot use the terminal")?;
    run(&mut terminal, &mut report).context("cannot use the terminal")
}

fn run(terminal: &mut DefaultTerminal, report: &mut TerminalReport<'_>) -> Result<(), Error> {
    loop {
        terminal.draw(|frame| report.draw(frame))?;
        loop {
            if next(&event::read()?, report) == Next::Quit {
                return Ok(());
            }
            // A key that is held down draws once for all of its events that wait.
            if !event::poll(Duration::ZERO)? {
                break;
            }
        }
    }
}

/// Handles an event. Those without a key only draw again.
fn next(event: &Event, report: &mut TerminalReport<'_>) -> Next {
    let Event::Key(event) = event else {
        return Next::Continue;
    };
    if event.kind == KeyEventKind::Release {
        return Next::Continue;
    }
    let is_control = event.modifiers.contains(KeyModifiers::CONTROL);
    if is_control && event.code == KeyCode::Char('c') {
        return Next::Quit;
    }
    key(*event).map_or(Next::Continue, |it| report.handle(it))
}

/// The key of an event; `None` if it has no meaning.
fn key(event: KeyEvent) -> Option<Key> {
    let other = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER;
    if event.modifiers.intersects(other) {
        return None;
    }
    Some(match event.code {
        KeyCode::Char(char) => Key::Char(char),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{key, next};
    use lockkeeper_report::{Key, Next, TerminalReport};
    use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

    #[test]
    fn keys_with_modifiers_have_no_meaning() {
        let event = |code, modifiers| KeyEvent::new(code, modifiers);
        let slash = event(KeyCode::Char('/'), KeyModifiers::NONE);
        assert_eq!(key(slash), Some(Key::Char('/')));
        let upper = event(KeyCode::Char('S'), KeyModifiers::SHIFT);
        assert_eq!(key(upper), Some(Key::Char('S')));
        assert_eq!(key(event(KeyCode::Char('q'), KeyModifiers::ALT)), None);
        assert_eq!(key(event(KeyCode::F(1), KeyModifiers::NONE)), None);
    }

    #[test]
    fn control_c_quits() {
        let mut report = TerminalReport::new(&[]);
        let mut event = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(next(&Event::Key(event), &mut report), Next::Quit);
        event.kind = KeyEventKind::Release;
        assert_eq!(next(&Event::Key(event), &mut report), Next::Continue);
        assert_eq!(next(&Event::Resize(1, 1), &mut report), Next::Continue);
    }
}
