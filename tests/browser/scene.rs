//! A chain for one person, the people on it, and a browser that looks at it.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::json;
use testkit::actor::Actor;
use testkit::node::{DevOptions, Node};
use testkit::senders::Senders;
use testkit::workload::keys;
use types::Body;

use crate::driver::{Browser, Driver};
use crate::wire::Wire;

const ACCOUNTS: usize = 10;
/// How many transactions are sent in one request.
const TOGETHER: usize = 1_000;

pub(crate) struct Scene {
    pub(crate) node: Node,
    pub(crate) wire: Wire,
    pub(crate) people: Vec<Actor>,
    pub(crate) browser: Browser,
    /// Pages of others that were opened on purpose.
    others: Vec<String>,
    artefacts: PathBuf,
}

impl Scene {
    /// A new chain and a new browser; pictures go to the folder.
    pub(crate) fn start(driver: &Driver, artefacts: &Path) -> anyhow::Result<Self> {
        Self::start_with(driver, artefacts, DevOptions::from_environment())
    }

    /// The same with other settings of the chain.
    pub(crate) fn start_with(
        driver: &Driver,
        artefacts: &Path,
        options: DevOptions,
    ) -> anyhow::Result<Self> {
        let options = DevOptions { accounts: ACCOUNTS, ..options };
        let node = Node::start(options)?;
        let wire = Wire::to(node.rpc)?;
        let people = keys(ACCOUNTS)?.into_iter().map(Actor::new).collect();
        let browser = driver.open()?;
        browser.resize(1280, 900)?;
        let (others, artefacts) = (Vec::new(), artefacts.to_owned());
        Ok(Self { node, wire, people, browser, others, artefacts })
    }

    /// Where every request of the page has to go.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.wire.address)
    }

    /// Loads a page anew.
    pub(crate) fn load(&self, route: &str) -> anyhow::Result<()> {
        self.browser.open(&format!("{}/explorer/#/{route}", self.origin()))
    }

    /// Goes to another page as a link does, and waits until it is drawn.
    pub(crate) fn go(&self, route: &str) -> anyhow::Result<()> {
        self.browser.run("location.hash = arguments[0]", &json!([format!("#/{route}")]))?;
        let is_drawn = "return decodeURIComponent(location.hash) !== '' \
            && document.querySelector('h1') !== null && document.querySelector('[aria-busy]') === null";
        self.browser.holds(&format!("{route} to be drawn"), is_drawn)
    }

    /// A picture of the page, kept under a name.
    pub(crate) fn picture(&self, name: &str) -> anyhow::Result<()> {
        self.browser.picture(&self.artefacts.join(format!("{name}.png")))
    }

    /// Sends signed texts that are all taken; answers their hashes.
    pub(crate) fn send(&self, texts: &[String]) -> anyhow::Result<Vec<String>> {
        let mut senders = Senders::open(self.node.rpc)?;
        let mut hashes = Vec::new();
        for part in texts.chunks(TOGETHER) {
            for item in senders.send(part)? {
                hashes.push(item["hash"].as_str().with_context(|| item.to_string())?.to_owned());
            }
        }
        Ok(hashes)
    }

    /// The same, and waits until they are in blocks.
    pub(crate) fn include(&self, texts: &[String]) -> anyhow::Result<Vec<String>> {
        let hashes = self.send(texts)?;
        for hash in &hashes {
            let seen = self.node.call("ombra_waitForTransaction", &json!([hash]))?;
            ensure!(seen["status"] == "included", "{seen}");
        }
        Ok(hashes)
    }

    /// Has a person do something, and waits until it is in a block; answers its hash.
    pub(crate) fn act(&mut self, person: usize, body: &Body) -> anyhow::Result<String> {
        let text = self.people[person].sign(body);
        Ok(self.include(&[text])?.remove(0))
    }

    /// Waits until the page has the row of a block.
    pub(crate) fn shows_block(&self, index: u64) -> anyhow::Result<()> {
        let row =
            format!("return document.querySelector('main tr[data-block=\"{index}\"]') !== null");
        self.browser.holds(&format!("block {index} to appear"), &row)
    }

    /// Neither the page nor the browser has complained.
    pub(crate) fn has_no_complaints(&self) -> anyhow::Result<()> {
        let complaints = self.browser.complaints()?;
        ensure!(complaints.is_empty(), "the browser complains: {complaints:?}");
        Ok(())
    }

    /// The page is not wider than the window.
    pub(crate) fn fits(&self, width: u64, name: &str) -> anyhow::Result<()> {
        let found = self.browser.run("return document.scrollingElement.scrollWidth", &json!([]))?;
        ensure!(found.as_u64() <= Some(width), "{name} is {found} wide and not {width}");
        Ok(())
    }

    /// Presses the first button that is seen and has this text.
    pub(crate) fn press(&self, button: &str) -> anyhow::Result<()> {
        self.press_where("one.textContent === arguments[0]", button)
    }

    /// Presses the first button that is seen and whose text begins so.
    pub(crate) fn press_first(&self, beginning: &str) -> anyhow::Result<()> {
        self.press_where("one.textContent.startsWith(arguments[0])", beginning)
    }

    fn press_where(&self, condition: &str, button: &str) -> anyhow::Result<()> {
        let click = format!(
            "const found = [...document.querySelectorAll('main button')].find((one) => {condition} && one.checkVisibility()); found?.click(); return found !== undefined"
        );
        self.browser.holds_of(&format!("the button {button}"), &click, &json!([button]))
    }

    /// Unfolds what has this summary.
    pub(crate) fn unfold(&self, summary: &str) -> anyhow::Result<()> {
        let open = "const found = [...document.querySelectorAll('main summary')].find((one) => one.textContent === arguments[0]); if (found) { found.parentElement.open = true; found.scrollIntoView(); } return found !== undefined";
        self.browser.holds_of(summary, open, &json!([summary]))
    }

    /// A page of somebody else was opened on purpose.
    pub(crate) fn also_asked(&mut self, origin: &str) {
        self.others.push(origin.to_owned());
    }

    /// Everything that was asked for came from this node, or from pages that were opened on purpose.
    pub(crate) fn asked_nobody_else(&self) -> anyhow::Result<()> {
        let (http, websocket) = (self.origin() + "/", format!("ws://{}/", self.wire.address));
        let requested = self.browser.requested()?;
        ensure!(requested.contains(&websocket), "no WebSocket: {requested:?}");
        for address in requested {
            let is_meant = self.others.iter().any(|origin| address.starts_with(origin));
            let is_own = address.starts_with(&http) || address == websocket || is_meant;
            ensure!(is_own || address == "about:blank", "the page asked for {address}");
        }
        Ok(())
    }
}
