//! A browser, driven by the protocol `WebDriver`: a `chromedriver` that this suite starts, and one
//! session of Chromium in it. Nothing is downloaded.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::node::{wait_for, wait_until};
use testkit::process::Process;
use testkit::suite::{Missing, needs};

/// The member under which the protocol names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// Longer than any command takes.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// Where the two programs are.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) chromium: PathBuf,
    pub(crate) driver: PathBuf,
}

impl Programs {
    /// Those that the variables name or that are in the path; else it is said which is missing.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let find = |variable, name: &str| {
            let named = std::env::var_os(variable).map(PathBuf::from);
            let program = named.or_else(|| in_path(name));
            let program = program.ok_or_else(|| Missing(format!("{name} is not installed")))?;
            needs::runs(&program, "--version")?;
            anyhow::Ok(program)
        };
        Ok(Self {
            chromium: find("CHROMIUM", "chromium")?,
            driver: find("CHROMEDRIVER", "chromedriver")?,
        })
    }
}

/// The whole path of a program; chromedriver does not look for one.
fn in_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// A `chromedriver`. Sessions must have ended before it is dropped.
pub(crate) struct Driver {
    _process: Process,
    address: SocketAddr,
    chromium: PathBuf,
}

impl Driver {
    pub(crate) fn start(programs: &Programs) -> anyhow::Result<Self> {
        let mut command = Command::new(&programs.driver);
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Process::start("chromedriver", &mut command)?;
        let port = process.lines()?.iter().find_map(|line| {
            line.rsplit_once("started successfully on port ")?
                .1
                .trim_end_matches('.')
                .parse::<u16>()
                .ok()
        });
        let port = port.context("chromedriver ended without a port")?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Ok(Self { _process: process, address, chromium: programs.chromium.clone() })
    }

    /// A browser without a history, with nothing to reach but this machine.
    pub(crate) fn open(&self) -> anyhow::Result<Browser> {
        let profile = tempfile::tempdir()?;
        let arguments = [
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--no-first-run".to_owned(),
            // A case opens more pages in ten seconds than Chromium lets a program of a page do.
            "--disable-ipc-flooding-protection".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
                .to_owned(),
            format!("--user-data-dir={}", profile.path().display()),
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "unhandledPromptBehavior": "ignore",
            "goog:chromeOptions": { "binary": self.chromium, "args": arguments },
            "goog:loggingPrefs": { "performance": "ALL", "browser": "ALL" },
        }}});
        let answer = exchange(self.address, "POST", "/session", Some(&wanted))?;
        let session = answer["sessionId"].as_str().context("a session")?.to_owned();
        let address = self.address;
        let (requested, sent) = (RefCell::default(), RefCell::default());
        let browser = Browser { address, session, requested, sent, _profile: profile };
        // The browser begins with a page of its own, which is none of ours.
        browser.open("about:blank")?;
        browser.forget_requests()?;
        Ok(browser)
    }
}

/// One browser with one window. Dropping it closes it.
pub(crate) struct Browser {
    address: SocketAddr,
    session: String,
    /// Every address that was asked for, as far as the log was read.
    requested: RefCell<Vec<String>>,
    /// What was sent to them.
    sent: RefCell<Vec<String>>,
    _profile: TempDir,
}

impl Browser {
    fn command(&self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let path = format!("/session/{}{path}", self.session);
        exchange(self.address, method, &path, body)
    }

    fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.command("POST", path, Some(body))
    }

    /// Opens an address; the page is loaded anew.
    pub(crate) fn open(&self, address: &str) -> anyhow::Result<()> {
        self.post("/url", &json!({ "url": "about:blank" }))?;
        self.post("/url", &json!({ "url": address })).map(drop)
    }

    /// Runs a script in the page and answers what it returns.
    pub(crate) fn run(&self, script: &str, arguments: &Value) -> anyhow::Result<Value> {
        self.post("/execute/sync", &json!({ "script": script, "args": arguments }))
    }

    /// The same with a script that calls its last argument with what it answers.
    pub(crate) fn run_later(&self, script: &str, arguments: &Value) -> anyhow::Result<Value> {
        self.post("/execute/async", &json!({ "script": script, "args": arguments }))
    }

    /// The text of the page as a reader sees it.
    pub(crate) fn text(&self) -> anyhow::Result<String> {
        let text = self.run("return document.body.innerText", &json!([]))?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until the page shows a text.
    pub(crate) fn shows(&self, wanted: &str) -> anyhow::Result<()> {
        let shown = wait_until(&format!("the page to show {wanted:?}"), || {
            Ok(self.text()?.contains(wanted))
        });
        shown.with_context(|| format!("it shows: {}", self.text().unwrap_or_default()))
    }

    /// Waits until there is an element for a selector, and answers it.
    pub(crate) fn find(&self, selector: &str) -> anyhow::Result<Element<'_>> {
        let query = json!({ "using": "css selector", "value": selector });
        wait_for(selector, || {
            let found = self.post("/elements", &query)?;
            let id = found[0][ELEMENT].as_str().map(str::to_owned);
            Ok(id.map(|id| Element { browser: self, id }))
        })
    }

    /// Waits until a script answers what is true for it.
    pub(crate) fn holds(&self, what: &str, script: &str) -> anyhow::Result<()> {
        self.holds_of(what, script, &json!([]))
    }

    /// The same with arguments.
    pub(crate) fn holds_of(&self, what: &str, script: &str, of: &Value) -> anyhow::Result<()> {
        let held = wait_until(what, || Ok(self.run(script, of)? == Value::Bool(true)));
        held.with_context(|| format!("it shows: {}", self.text().unwrap_or_default()))
    }

    /// Presses keys, whatever has the focus.
    pub(crate) fn press(&self, keys: &str) -> anyhow::Result<()> {
        let events = keys.chars().flat_map(|key| {
            ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() }))
        });
        let events: Vec<_> = events.collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": events });
        self.post("/actions", &json!({ "actions": [keyboard] })).map(drop)
    }

    /// What Chromium's own protocol offers.
    pub(crate) fn devtools(&self, command: &str, params: &Value) -> anyhow::Result<Value> {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": params }))
    }

    /// The size of the page's window in its own pixels, as on a phone where it is small.
    pub(crate) fn resize(&self, width: u32, height: u32) -> anyhow::Result<()> {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &size).map(drop)
    }

    /// `light` or `dark`, as the system says it.
    pub(crate) fn prefers(&self, scheme: &str) -> anyhow::Result<()> {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": features })).map(drop)
    }

    /// A picture of the whole page, in a file.
    pub(crate) fn picture(&self, file: &Path) -> anyhow::Result<()> {
        let whole = json!({ "format": "png", "captureBeyondViewport": true });
        let answer = self.devtools("Page.captureScreenshot", &whole)?;
        let text = answer["data"].as_str().context("a picture")?;
        std::fs::write(file, STANDARD.decode(text)?)?;
        Ok(())
    }

    /// The addresses of every request and WebSocket since the browser was opened.
    pub(crate) fn requested(&self) -> anyhow::Result<Vec<String>> {
        self.read_log()?;
        Ok(self.requested.borrow().clone())
    }

    /// What was sent in requests and on web sockets since the browser was opened.
    pub(crate) fn sent(&self) -> anyhow::Result<Vec<String>> {
        self.read_log()?;
        Ok(self.sent.borrow().clone())
    }

    /// Forgets what was asked for up to now.
    pub(crate) fn forget_requests(&self) -> anyhow::Result<()> {
        self.read_log()?;
        self.requested.take();
        Ok(())
    }

    fn read_log(&self) -> anyhow::Result<()> {
        let entries = self.post("/se/log", &json!({ "type": "performance" }))?;
        for entry in entries.as_array().into_iter().flatten() {
            let text = entry["message"].as_str().context("an entry is a text")?;
            let message: Value = serde_json::from_str(text)?;
            let params = &message["message"]["params"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            match message["message"]["method"].as_str() {
                Some("Network.requestWillBeSent") => {
                    self.requested.borrow_mut().push(text(&params["request"]["url"]));
                    self.sent.borrow_mut().push(text(&params["request"]["postData"]));
                }
                Some("Network.webSocketCreated") => {
                    self.requested.borrow_mut().push(text(&params["url"]));
                }
                Some("Network.webSocketFrameSent") => {
                    self.sent.borrow_mut().push(text(&params["response"]["payloadData"]));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What the page and the browser complained about since the last time; the browser's own pages, such as
    /// the first one, are not ours.
    pub(crate) fn complaints(&self) -> anyhow::Result<Vec<String>> {
        let entries = self.post("/se/log", &json!({ "type": "browser" }))?;
        let messages = entries.as_array().context("a list of messages")?.iter();
        let messages = messages.filter_map(|entry| entry["message"].as_str());
        let of_pages = messages.filter(|message| !message.starts_with("chrome://"));
        Ok(of_pages.map(str::to_owned).collect())
    }

    /// Whether a script has opened a dialog of the browser.
    pub(crate) fn has_dialog(&self) -> bool {
        self.command("GET", "/alert/text", None).is_ok()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.command("DELETE", "", None));
    }
}

/// An element of the page.
pub(crate) struct Element<'a> {
    browser: &'a Browser,
    id: String,
}

impl Element<'_> {
    pub(crate) fn click(&self) -> anyhow::Result<()> {
        self.browser.post(&format!("/element/{}/click", self.id), &json!({})).map(drop)
    }

    /// Types a text in place of what is there.
    pub(crate) fn fill(&self, text: &str) -> anyhow::Result<()> {
        self.browser.post(&format!("/element/{}/clear", self.id), &json!({}))?;
        let value = json!({ "text": text });
        self.browser.post(&format!("/element/{}/value", self.id), &value).map(drop)
    }

    pub(crate) fn text(&self) -> anyhow::Result<String> {
        let text = self.browser.command("GET", &format!("/element/{}/text", self.id), None)?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }
}

/// Sends a command and answers its value.
fn exchange(
    address: SocketAddr,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> anyhow::Result<Value> {
    let mut stream = TcpStream::connect(address).context("connecting to chromedriver")?;
    stream.set_read_timeout(Some(COMMAND_TIMEOUT))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while stream.read_line(&mut line)? > 0 && !line.trim_end().is_empty() {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let body = String::from_utf8(body)?;
    let mut answer: Value = serde_json::from_str(&body).with_context(|| body.clone())?;
    let value = answer["value"].take();
    if let Some(error) = value["error"].as_str() {
        bail!("{method} {path}: {error}: {}", value["message"].as_str().unwrap_or_default());
    }
    ensure!(answer.is_object(), "{method} {path}: an answer that is no object");
    Ok(value)
}
