//! What strangers write stays text: as such, and because the browser would refuse the rest.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use testkit::actor::{self, Actor};

use crate::scene::Scene;
use crate::story::{self, Story, Texts};

/// What people write who want to do something in other people's browsers. Each fits the shortest
/// field behind the field's number.
const TRICKS: &[&str] = &[
    "<img src=x onerror=pwned()>",
    "<img src=//evil.test/a.png>",
    "\"><script>pwned()</script>",
    "</script><script src=//evil.test>",
    "<svg/onload=pwned()>",
    "javascript:pwned()",
    "<a href=javascript:pwned()>x</a>",
    "' onmouseover='pwned()",
    "<iframe src=//evil.test></iframe>",
    "<form action=//evil.test><input>",
    "<input autofocus onfocus=pwned()>",
    "<base href=//evil.test/>",
    "<meta http-equiv=refresh content=0>",
    "<link rel=stylesheet href=//evil.test>",
    "<style>@import'//evil.test'</style>",
    "{{constructor.constructor('pwned()')()}}",
    "${pwned()}`-pwned()-`",
    "__proto__",
    "constructor",
    "#/wallet",
    "//evil.test/%2e%2e",
    "&lt;b&gt;&#x3c;img src=x&#62;",
    "\u{202e}txt.exe\u{202c}",
    "a\u{200b}b\u{feff}c\u{2066}d\u{2069}",
    "\u{7}\u{1b}[31m\u{9f}",
    "Z\u{335}a\u{336}l\u{337}g\u{338}o\u{334}",
];

/// The same trick in every field, with the field's number before it.
struct Trick(&'static str);

impl Texts for Trick {
    fn text(&self, field: &str, bytes_max: usize) -> String {
        let text = format!("{}:{}", field.len(), self.0);
        assert!(text.len() <= bytes_max, "{text} has more than {bytes_max} bytes");
        text
    }
}

/// As the page shows it: characters that one cannot see by their numbers.
fn shown(text: &str) -> String {
    let unseen =
        |c: char| c.is_control() || "\u{202e}\u{202c}\u{200b}\u{feff}\u{2066}\u{2069}".contains(c);
    let show = |c| if unseen(c) { format!("U+{:04X}", u32::from(c)) } else { String::from(c) };
    text.chars().map(show).collect()
}

/// Nothing in the page can do anything, or lead anywhere, that the program did not put there.
const HARMLESS: &str = r"
const wrong = [];
if (window.wasPwned) wrong.push('a script of a stranger ran');
for (const element of document.querySelectorAll('*')) {
  const name = element.localName;
  if (['iframe', 'object', 'embed', 'base', 'style', 'frame', 'audio', 'video', 'source'].includes(name)) wrong.push(name);
  for (const { name: attribute, value } of element.attributes) {
    if (attribute.startsWith('on') || attribute === 'srcset' || attribute === 'action') wrong.push(attribute);
    if (attribute === 'href' && name === 'a' && !value.startsWith('#/') && !/^\.\.\/api\/blob\/[\w-]{1,128}$/.test(value)) wrong.push(`href ${value}`);
    if (attribute === 'src' && !['app.js', 'icon.svg'].includes(value)) wrong.push(`src ${value}`);
    if (attribute === 'style' && !/^(--hue: \d+|flex-grow: [\d.]+);$/.test(value)) wrong.push(`style ${value}`);
  }
}
for (const [selector, count] of [['script', 1], ['link', 2], ['meta', 4], ['img', 1], ['form', null]]) {
  const found = document.querySelectorAll(selector).length;
  if (count !== null && found !== count) wrong.push(`${found} ${selector}`);
}
return wrong;
";

const TEXTS: &str =
    "return [...document.querySelectorAll('main .said')].map((one) => one.textContent)";

/// Notes in a page that is loaded from now on whether a stranger's script ran.
pub(super) fn set_trap(scene: &Scene) -> anyhow::Result<()> {
    let trap = json!({ "source": "window.pwned = () => { window.wasPwned = true; };" });
    scene.browser.devtools("Page.addScriptToEvaluateOnNewDocument", &trap).map(drop)
}

pub(super) fn is_harmless(scene: &Scene, route: &str) -> anyhow::Result<()> {
    let wrong = scene.browser.run(HARMLESS, &json!([]))?;
    ensure!(wrong == json!([]), "{route}: {wrong}");
    ensure!(!scene.browser.has_dialog(), "{route}: a dialog is open");
    Ok(())
}

/// Waits until the page shows these texts, each whole and as the text of one element.
pub(super) fn shows_whole(scene: &Scene, route: &str, wanted: &[String]) -> anyhow::Result<()> {
    let texts = || -> anyhow::Result<Vec<Value>> {
        Ok(scene.browser.run(TEXTS, &json!([]))?.as_array().cloned().unwrap_or_default())
    };
    let missing = || -> anyhow::Result<Vec<String>> {
        let texts = texts()?;
        let missing = wanted.iter().filter(|text| !texts.iter().any(|one| one == text.as_str()));
        Ok(missing.cloned().collect())
    };
    let shown = testkit::node::wait_until("the texts", || Ok(missing()?.is_empty()));
    shown.with_context(|| format!("{route} lacks {:?} and has {:?}", missing(), texts()))
}

/// The pages of a story, and the fields that each shows whole.
fn pages(story: &Story) -> Vec<(String, &'static [&'static str])> {
    let mut pages: Vec<(String, &'static [&'static str])> = vec![
        (String::new(), &["prompt"]),
        (
            format!("run/{}", story.run),
            &[
                "prompt",
                "toolsWhitelist",
                "modelHint",
                "modelInfo",
                "toolCalls.name",
                "finalAnswerInline",
            ],
        ),
        (
            format!("conversation/{}", story.conversation),
            &["content", "answer turn", "prompt", "finalAnswerInline"],
        ),
        (format!("account/{}", story.submitter), &["prompt"]),
        (format!("account/{}", story.miner), &["name", "capabilities", "modelInfo"]),
        (format!("blob/{}", story.blob), &["contentType"]),
        ("miners".to_owned(), &["name", "capabilities", "modelInfo"]),
        ("runs".to_owned(), &["prompt"]),
        ("pool".to_owned(), &["content"]),
    ];
    for (kind, hash) in &story.txs {
        let fields: &[&str] = match kind.as_str() {
            "CHAT_TURN" => &["content"],
            "AGENT_REQUEST" => &["prompt"],
            "AGENT_CLAIM" => &["modelInfo"],
            "AGENT_STEP" => &["toolCalls.name"],
            "AGENT_FINISH" => &["finalAnswerInline"],
            "MINER_REGISTER" => &["name", "capabilities", "modelInfo"],
            "SOCIAL_BLOB_INIT" => &["contentType"],
            _ => continue,
        };
        pages.push((format!("tx/{hash}"), fields));
    }
    pages
}

pub(super) fn stay_text(scene: &mut Scene) -> anyhow::Result<()> {
    set_trap(scene)?;
    scene.load("")?;
    for (number, trick) in TRICKS.iter().enumerate() {
        let story = story::play(scene, &Trick(trick), number).context(*trick)?;
        for (route, fields) in pages(&story) {
            scene.go(&route)?;
            let of = |field: &&str| {
                let found = story.texts.iter().find(|(known, _)| known == field);
                found.map(|(_, text)| shown(text)).context("a text")
            };
            let wanted: Vec<_> = fields.iter().map(of).collect::<anyhow::Result<_>>()?;
            shows_whole(scene, &route, &wanted)?;
            is_harmless(scene, &route)?;
        }
        let query = json!([trick]);
        scene.browser.run("document.getElementById('query').value = arguments[0]; document.querySelector('#search button').click()", &query)?;
        scene
            .browser
            .holds("the search to end", "return document.querySelector('[aria-busy]') === null")?;
        is_harmless(scene, trick)?;
    }
    scene.picture("strangers")?;
    members_of_strangers_stay_text(scene)?;
    scene.has_no_complaints()
}

/// A transaction may have members that no type knows, with names and values of any kind.
fn members_of_strangers_stay_text(scene: &mut Scene) -> anyhow::Result<()> {
    let (trick, name) = (TRICKS[0], "<svg/onload=pwned()>");
    let members = json!({ name: trick, "__proto__": trick, "prompt": [trick] });
    let text = with_members(&mut scene.people[2], &members.to_string())?;
    let hashes = scene.include(&[text])?;
    let route = format!("tx/{}", hashes[0]);
    scene.go(&route)?;
    let (value, list) = (json!(trick).to_string(), json!([trick]).to_string());
    shows_whole(scene, &route, &[name.to_owned(), "__proto__".to_owned(), value, list])?;
    is_harmless(scene, &route)
}

/// A signed turn with further members before its end.
fn with_members(sender: &mut Actor, members: &str) -> anyhow::Result<String> {
    let text = sender.sign(&actor::transfer(sender.address(), 1));
    let (payload, _) = text.split_once(",\"hash\":").context("a signed text ends with its hash")?;
    let inner = members.trim_start_matches('{').trim_end_matches('}');
    let payload = format!("{payload},{inner}}}");
    Ok(sender.seal(&payload))
}

/// What the page does not do, tried from within: the browser refuses it.
const FORBIDDEN: &[(&str, &str)] = &[
    (
        "markup from text",
        "try { document.body.innerHTML = '<b>x</b>'; return false } catch { return true }",
    ),
    (
        "a script from text",
        "try { document.createElement('script').text = 'window.wasPwned = true'; return false } catch { return true }",
    ),
    (
        "a frame from text",
        "try { document.createElement('iframe').srcdoc = 'x'; return false } catch { return true }",
    ),
    ("code from text", "try { eval('1'); return false } catch { return true }"),
    (
        "a script in an attribute",
        "try { document.body.setAttribute('onclick', 'pwned()'); return false } catch { return true }",
    ),
];

/// These begin something, and the browser reports that it has refused it.
const REPORTED: &[(&str, &str, &str)] = &[
    ("connect-src", "fetch('http://127.0.0.1:9/').catch(() => {})", "a request to another port"),
    (
        "connect-src",
        "try { new WebSocket('ws://127.0.0.1:9/') } catch {}",
        "a WebSocket to another port",
    ),
    ("img-src", "new Image().src = 'http://127.0.0.1:9/a.png'", "a picture of another place"),
    (
        "form-action",
        "const form = document.createElement('form'); form.action = '/'; document.body.append(form); form.submit()",
        "a form",
    ),
    (
        "style-src-attr",
        "document.body.setAttribute('style', 'color: red')",
        "a style in an attribute",
    ),
    (
        "base-uri",
        "const base = document.createElement('base'); base.href = 'http://127.0.0.1:9/'; document.head.append(base)",
        "another base",
    ),
];

pub(super) fn are_kept_out(scene: &mut Scene) -> anyhow::Result<()> {
    scene.load("")?;
    scene.browser.shows("Live")?;
    for (name, script) in FORBIDDEN {
        // Later, by the page's own rules: what the driver itself runs may do more.
        let later = format!("setTimeout(() => {{ window.outcome = (() => {{ {script} }})() }})");
        scene.browser.run(&format!("window.outcome = null; {later}"), &json!([]))?;
        scene.browser.holds(&format!("{name} to be refused"), "return window.outcome === true")?;
    }
    let listen = "window.refused = []; document.addEventListener('securitypolicyviolation', (event) => window.refused.push(event.effectiveDirective))";
    scene.browser.run(listen, &json!([]))?;
    for (directive, script, name) in REPORTED {
        scene.browser.run("window.refused.length = 0", &json!([]))?;
        scene.browser.run(script, &json!([]))?;
        let is_refused = format!("return window.refused.includes('{directive}')");
        scene.browser.holds(&format!("{name} to be refused"), &is_refused)?;
    }
    // These requests were meant to be tried.
    scene.load("")?;
    scene.browser.forget_requests()?;
    scene.load("")?;
    scene.browser.shows("Live")
}
