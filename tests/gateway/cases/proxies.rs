//! Reverse proxies with TLS before the gateway, configured as docs/gateway.md says. Only ports, and files
//! with certificates, are replaced.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::chat::{chat, stream};
use testkit::net::free_ports;
use testkit::node::{wait_for, wait_until};
use testkit::process::{Signal, lines, lines_to, signal};
use testkit::python;
use testkit::suite::{needs, say};

use crate::document::piece;
use crate::scene::{Scene, at_home};

/// The name in the document.
const NAME: &str = "gateway.example.org";
/// Longer than the bodies that nginx accepts by default.
const LONG_BYTES: usize = 5 * 1_024 * 1_024;
/// What Caddy is told besides: no real certificates, and nothing in other ports and folders.
const CADDY_ALONE: &str =
    "{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\tauto_https disable_redirects\n}\n";

/// Starts a proxy with its files in a folder before a gateway.
type Start = fn(&Path, SocketAddr) -> anyhow::Result<Proxy>;

/// A proxy that runs. Dropping it stops it.
struct Proxy {
    process: Child,
    port: u16,
    /// Whose certificates clients trust.
    authority: PathBuf,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // A master that is killed leaves its workers behind.
        drop(signal(self.process.id(), Signal::TERM));
        let ended = wait_for("the proxy to end", || Ok(self.process.try_wait()?));
        if ended.is_err() {
            drop(self.process.kill());
        }
        drop(self.process.wait());
    }
}

pub(crate) fn run() -> anyhow::Result<String> {
    for (program, argument) in
        [("caddy", "version"), ("nginx", "-v"), ("openssl", "version"), ("curl", "--version")]
    {
        needs::runs(program, argument)?;
    }
    let hosts = piece("toml", "hosts =")?;
    let settings = format!("claim_bond_micro = 0\nclaim_wait_ms = 60000\n{hosts}");
    Scene::new(&settings, &[])?.play(|scene| {
        let starts: [(&str, Start); 2] = [("caddy", caddy), ("nginx", nginx)];
        for (name, start) in starts {
            let folder = tempfile::tempdir()?;
            let proxy = start(folder.path(), scene.client.address)?;
            behind(scene, name, &proxy).with_context(|| name)?;
            say(&format!("   {name}"));
        }
        Ok("TLS, streams at once, long bodies, and clients that hang up".to_owned())
    })
}

fn caddy(folder: &Path, gateway: SocketAddr) -> anyhow::Result<Proxy> {
    let port = free_ports(1)?;
    let code = piece("caddyfile", "reverse_proxy")?;
    let code = code.replace("127.0.0.1:8788", &gateway.to_string());
    let code = code.replace(NAME, &format!("https://{NAME}:{port}"));
    let config = folder.join("Caddyfile");
    std::fs::write(&config, format!("{CADDY_ALONE}{code}"))?;
    let mut command = Command::new("caddy");
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&config);
    command.env("HOME", folder).env("XDG_DATA_HOME", folder).env("XDG_CONFIG_HOME", folder);
    let process = spawned(&mut command)?;
    Ok(Proxy { process, port, authority: folder.join("caddy/pki/authorities/local/root.crt") })
}

fn nginx(folder: &Path, gateway: SocketAddr) -> anyhow::Result<Proxy> {
    let port = free_ports(1)?;
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    openssl.args(["-nodes", "-days", "1", "-subj", &format!("/CN={NAME}"), "-addext"]);
    openssl.arg(format!("subjectAltName=DNS:{NAME}")).arg("-keyout").arg(&key);
    python::run(openssl.arg("-out").arg(&certificate))?;
    let code = piece("nginx", "proxy_pass")?;
    let places = format!("/etc/letsencrypt/live/{NAME}");
    let code = code.replace("127.0.0.1:8788", &gateway.to_string());
    let code = code.replace("listen 443", &format!("listen 127.0.0.1:{port}"));
    let code = code.replace(&format!("{places}/fullchain.pem"), &certificate.display().to_string());
    let code = code.replace(&format!("{places}/privkey.pem"), &key.display().to_string());
    let own = folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("{kind}_temp_path {own}/{kind};\n"))
        .collect();
    // A worker that root starts is somebody else, who cannot read this folder.
    let head = format!("daemon off;\nuser root;\npid {own}/pid;\nevents {{}}\n");
    let config = folder.join("nginx.conf");
    std::fs::write(&config, format!("{head}http {{\naccess_log off;\n{temporary}{code}}}\n"))?;
    let mut command = Command::new("nginx");
    command.args(["-e", "stderr", "-p"]).arg(folder).arg("-c").arg(&config);
    let process = spawned(&mut command)?;
    Ok(Proxy { process, port, authority: certificate })
}

fn spawned(command: &mut Command) -> anyhow::Result<Child> {
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

impl Proxy {
    /// A request through the proxy, by the name of the document.
    fn curl(&self, path: &str, key: &str, body: &str) -> Command {
        let Self { port, authority, .. } = self;
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--no-buffer", "--resolve"]);
        curl.arg(format!("{NAME}:{port}:127.0.0.1")).arg("--cacert").arg(authority);
        curl.args(["-H", &format!("Authorization: Bearer {key}")]);
        if !body.is_empty() {
            curl.args(["-H", "Content-Type: application/json", "--data-binary", body]);
            curl.args(["-H", "Accept: application/json, text/event-stream"]);
        }
        curl.arg(format!("https://{NAME}:{port}{path}"));
        at_home(&mut curl);
        curl
    }
}

fn behind(scene: &Scene, name: &str, proxy: &Proxy) -> anyhow::Result<()> {
    let key = &scene.client.key;
    wait_until("the proxy to serve", || {
        let told = proxy.curl("/healthz", key, "").output()?;
        Ok(told.stdout == b"ok\n")
    })?;
    let chats = "/v1/chat/completions";
    let told = python::run(&mut proxy.curl(chats, key, &chat("say Hello").to_string()))?;
    let told: Value = serde_json::from_str(&told)?;
    ensure!(told["choices"][0]["message"]["content"] == "Hello", "{told}");
    // What is known of a stream comes at once.
    let held = format!("{name} stream");
    let body = stream(&format!("hold {held}")).to_string();
    let mut client = proxy.curl(chats, key, &body).stdout(Stdio::piped()).spawn()?;
    let printed = lines(client.stdout.take().context("its output")?);
    // The gateway may send it before the miner begins. The miner ends nothing before it is let go.
    lines_to(&printed, "data: ").context("the first part is kept until the last")?;
    wait_until("the miner to hold the stream", || Ok(scene.worker.holds(&held)))?;
    scene.worker.let_go(&held);
    lines_to(&printed, "data: [DONE]").context("the end of the stream")?;
    ensure!(client.wait()?.success(), "curl has a complaint");
    // The gateway is told who hangs up.
    let held = format!("{name} hang-up");
    let body = chat(&format!("hold {held}")).to_string();
    let mut client = proxy.curl(chats, key, &body).stdout(Stdio::null()).spawn()?;
    wait_until("the miner to hold it", || Ok(scene.worker.holds(&held)))?;
    client.kill()?;
    client.wait()?;
    wait_until("the gateway to know that the client hung up", || {
        let told = scene.home.told(&["requests", "--limit", "1"])?;
        Ok(told[0]["delivery"] == "lost")
    })?;
    scene.worker.let_go(&held);
    // It is the gateway that says what is wrong with a long body.
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("body");
    let mut long = chat(&"x".repeat(LONG_BYTES));
    long["n"] = json!(2);
    std::fs::write(&file, long.to_string())?;
    let told = python::run(&mut proxy.curl(chats, key, &format!("@{}", file.display())))?;
    ensure!(told.contains("unsupported_parameter"), "{told}");
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let told = python::run(&mut proxy.curl("/mcp", key, &list))?;
    ensure!(told.contains("\"ask\""), "{told}");
    Ok(())
}
