//! The page in a browser: nothing is wider than the window, everything that opens has the focus by keyboard, no text runs as a program,
//! and the page of a dashboard brings itself up to date. Runs if `KCTL_BROWSER` names Chromium.

use super::hostile;
use super::sample::{large_report, small_report};
use cli::ui::report::render;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Widths of windows, in pixels.
const WIDTHS: [u32; 2] = [1280, 390];

/// Looks at every page in a frame, and writes down what is wrong.
const LOOK: &str = r#"
<pre id="found"></pre>
<script>
addEventListener("load", () => {
  const found = [];
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument;
    const wrong = (text) => found.push(`${frame.title}: ${text}`);
    if (getComputedStyle(page.querySelector("details")).marginTop === "0px") wrong("it has no style");
    if (frame.contentWindow.attacked !== undefined) wrong("a text ran");
    for (const part of page.querySelectorAll("details")) part.open = true;
    const root = page.documentElement;
    if (root.scrollWidth > root.clientWidth) wrong(`it is ${root.scrollWidth} wide`);
    for (const part of page.querySelectorAll("body *")) {
      const box = part.getBoundingClientRect();
      if (box.left < -1 || box.right > root.clientWidth + 1) wrong(`${part.outerHTML.slice(0, 80)} is outside`);
    }
    for (const part of page.querySelectorAll("a, summary")) {
      part.focus();
      if (page.activeElement !== part) wrong(`${part.outerHTML} takes no focus`);
    }
    if (page.querySelector("[onclick], [tabindex], button, input")) wrong("something needs a mouse");
  }
  document.getElementById("found").textContent = `found ${found.length}: ${found.slice(0, 20).join("\n")}`;
});
</script>
"#;

/// Selects text of the page in a frame, so that it fetches nothing, and shows what the page says of that.
const SELECT: &str = r#"<!doctype html><meta charset="utf-8">
<iframe src="/?page" width="800" height="800"></iframe>
<pre id="found"></pre>
<script>
addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument;
  page.getSelection().selectAllChildren(page.querySelector("h1"));
  setInterval(() => {
    document.getElementById("found").textContent = `${page.title}: ${page.getElementById("state").textContent}`;
  }, 1000);
});
</script>
"#;

/// The browser; `None`, and a line that says so, if none is named.
fn find_browser() -> Option<PathBuf> {
    let named = std::env::var_os("KCTL_BROWSER");
    if named.is_none() {
        // Not captured, as `println!` is.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no browser shows the page: name Chromium with KCTL_BROWSER"
        );
    }
    named.map(PathBuf::from)
}

/// Serves pages at `http://127.0.0.1:PORT/`: the n-th request gets the n-th page, later ones the last.
fn serve_pages(pages: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let shared = Arc::new((pages, AtomicUsize::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = Arc::clone(&shared);
            // A browser may open connections for later.
            std::thread::spawn(move || answer(&stream, &shared.0, &shared.1));
        }
    });
    format!("http://{address}/")
}

fn answer(mut stream: &TcpStream, pages: &[String], given: &AtomicUsize) {
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let of_page = |line: &String| line.starts_with("GET / ") || line.starts_with("GET /?");
    let is_page = head.first().is_some_and(of_page);
    let (status, body) = if is_page {
        let number = given.fetch_add(1, Ordering::Relaxed);
        ("200 OK", pages[number.min(pages.len() - 1)].as_str())
    } else {
        ("404 Not Found", "")
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    // It may have gone away.
    let _ = stream.write_all((head + body).as_bytes());
}

/// The elements of a page once its programs have run for some seconds of the browser's own time.
fn elements_after(browser: &Path, url: &str, milliseconds: u32) -> String {
    let home = tempfile::tempdir().expect("a folder");
    let data = format!("--user-data-dir={}", home.path().display());
    let budget = format!("--virtual-time-budget={milliseconds}");
    let mut command = Command::new(browser);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--disable-dev-shm-usage", "--no-first-run", "--dump-dom"])
        // Nothing is asked of its maker.
        .args([
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .args(["--disable-sync", "--disable-quic"])
        .args([&data, &budget, url])
        .env("HOME", home.path());
    let ran = command.output();
    let ran = ran.unwrap_or_else(|error| panic!("{}: {error}", browser.display()));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    String::from_utf8(ran.stdout).expect("text")
}

#[test]
fn every_page_fits_its_window_and_needs_no_mouse() {
    let Some(browser) = find_browser() else {
        return;
    };
    let live = Some(Duration::from_hours(1));
    let pages = [
        ("small", render(&small_report(str::to_owned), None)),
        ("hostile", render(&small_report(hostile), live)),
        ("large", render(&large_report(300), None)),
    ];
    let mut frames = "<!doctype html><meta charset=\"utf-8\">".to_owned();
    for (name, page) in &pages {
        let source = page.html.replace('&', "&amp;").replace('"', "&quot;");
        for width in WIDTHS {
            frames += &format!(
                "<iframe title=\"{name} {width}\" width=\"{width}\" height=\"800\" srcdoc=\"{source}\"></iframe>"
            );
        }
    }
    let url = serve_pages(vec![frames + LOOK]);
    let elements = elements_after(&browser, &url, 10_000);
    let found = elements.split_once("<pre id=\"found\">");
    let found = found.and_then(|(_, after)| after.split_once("</pre>"));
    let (found, _) = found.expect("what was found");
    assert!(found.starts_with("found 0: "), "{found}");
}

#[test]
fn the_page_of_a_dashboard_brings_itself_up_to_date() {
    let Some(browser) = find_browser() else {
        return;
    };
    let refresh = Some(Duration::from_secs(1));
    let before = render(&small_report(str::to_owned), refresh).html;
    let mut report = small_report(str::to_owned);
    report.cluster = "later.example.com".to_owned();
    let after = render(&report, refresh).html;
    let url = serve_pages(vec![before, after]);
    let elements = elements_after(&browser, &url, 10_000);
    assert!(
        elements.contains("<h1>later.example.com</h1>"),
        "{elements}"
    );
    assert!(elements.contains("<title>later.example.com: 1 problem</title>"));
    assert!(elements.contains("<p id=\"state\" role=\"status\"></p>"));
}

#[test]
fn a_page_that_fetches_nothing_says_that_it_is_old() {
    let Some(browser) = find_browser() else {
        return;
    };
    let page = render(&small_report(str::to_owned), Some(Duration::from_secs(1))).html;
    for (milliseconds, is_old) in [(10_000, false), (60_000, true)] {
        let url = serve_pages(vec![SELECT.to_owned(), page.clone()]);
        let elements = elements_after(&browser, &url, milliseconds);
        let found = elements.split_once("<pre id=\"found\">");
        let found = found.and_then(|(_, after)| after.split_once("</pre>"));
        let (found, _) = found.expect("what the page says");
        assert!(found.contains("demo.example.com: 1 problem: "), "{found}");
        assert_eq!(found.contains("was fetched at"), is_old, "{found}");
        assert_eq!(
            found.starts_with("No longer up to date: "),
            is_old,
            "{found}"
        );
    }
}
