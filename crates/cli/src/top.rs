//! `nearmiss observe --top`: the same figures, of the last second, in the terminal.

use anyhow::Context;
use nearmiss_observe::watch::{Live, Options, Snapshot, Target};
use nearmiss_report::observe::top_lines;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::Paragraph;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often the view changes.
const REFRESH: Duration = Duration::from_secs(1);

/// Runs the view until `q`, Ctrl-C, the end of the target or of the time.
pub fn run(target: &Target, options: &Options) -> anyhow::Result<ExitCode> {
    let mut live = Live::start(target, options)?;
    let mut terminal = ratatui::try_init().context("--top needs a terminal; without one, use --for 5s")?;
    let outcome = show(&mut terminal, &mut live, options);
    ratatui::restore();
    outcome.map(|()| ExitCode::SUCCESS)
}

fn show(terminal: &mut ratatui::DefaultTerminal, live: &mut Live, options: &Options) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut leave = false;
    draw(terminal, &Snapshot::default(), "the first figures come in a second")?;
    while !leave {
        live.wait(REFRESH, |limit| {
            leave |= wants_to_leave(limit);
            leave
        });
        let snapshot = live.snapshot()?;
        draw(terminal, &snapshot, &foot(live))?;
        leave |= snapshot.ended || options.limit.is_some_and(|limit| started.elapsed() >= limit);
    }
    Ok(())
}

/// How to leave, and what is not shown.
fn foot(live: &Live) -> String {
    let off: Vec<&str> = live.instruments().iter().filter(|i| !i.on).map(|i| i.name.as_str()).collect();
    if off.is_empty() {
        "q: leave".to_owned()
    } else {
        format!("q: leave; not here: {} (nearmiss doctor shows why)", off.join(", "))
    }
}

/// Waits for a key; anything but a key that leaves is ignored.
fn wants_to_leave(limit: Duration) -> bool {
    match event::poll(limit).map(|ready| ready.then(event::read)) {
        Ok(Some(Ok(Event::Key(key)))) => {
            matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
                || (key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL))
        }
        Ok(Some(Err(_))) | Err(_) => true,
        _ => false,
    }
}

fn draw(terminal: &mut ratatui::DefaultTerminal, snapshot: &Snapshot, foot: &str) -> anyhow::Result<()> {
    terminal.draw(|frame| {
        let area = frame.area();
        let rows = usize::from(area.height.saturating_sub(1));
        let lines = top_lines(&snapshot.observed, area.width.into(), rows);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let mut text: Vec<Line<'_>> = lines
            .into_iter()
            .take(rows)
            .map(|(title, line)| if title { Line::styled(line, bold) } else { Line::raw(line) })
            .collect();
        text.resize(rows, Line::raw(""));
        text.push(Line::styled(foot.to_owned(), Style::new().add_modifier(Modifier::DIM)));
        frame.render_widget(Paragraph::new(Text::from(text)), area);
    })?;
    Ok(())
}
