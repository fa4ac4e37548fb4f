//! What must hold.

use std::net::{TcpListener, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use agent::executor::{ContainersConfig, Executed, executor_of};
use anyhow::{Context as _, ensure};
use testkit::docker::docker;
use testkit::node::wait_until;
use testkit::parallel::joined;
use testkit::suite::Case;
use types::call::Outcome;
use types::{Address, Usage};

use crate::bench::{Bench, LIMITS, Wire, agent, containers, own_label, owner, text};

/// Longer than anything takes that is no fault, on a machine that has much else to do.
const LONG_MS: u64 = 120_000;

type Run = fn(&Bench<'_>) -> anyhow::Result<()>;

const fn case(name: &'static str, run: Run) -> Case<Run> {
    Case::new(name, run)
}

/// All of them.
pub(crate) const CASES: &[Case<Run>] = &[
    case("success", success).about("an answer, its usage and its receipt"),
    case("example", example).about("the example finds values, and says why it does not"),
    case("failure", failure).about("a status 4xx is a failure with the body as its reason"),
    case("unable", unable).about("every other status, and every other answer, is unable"),
    case("tokens", tokens).about("tokens are counted where they are numbers, and limited"),
    case("long", long).about("a body without an end is a failure, and not read to it"),
    case("wall", wall).about("an agent that hangs is given up when its time is over"),
    case("never", never).about("one that never listens, ends at once or cannot start is unable"),
    case("fuel", fuel).about("processor time beyond the fuel of the call is a failure"),
    case("fork", fork).about("there are no more processes than allowed, and none afterwards"),
    case("memory", memory).about("more memory than allowed ends the agent"),
    case("files", files).about("nothing can be written but a bounded /tmp"),
    case("rights", rights).about("no user, capability or way to one, and no relay to reach into"),
    case("phone", phone).about("no address and no name can be reached"),
    case("print", print).about("what is printed goes nowhere"),
    case("images", images).about("only images that are named and here, without volumes"),
    case("pull", pull).about("an image that cannot be got is said to be missing"),
    case("stop", stop).about("a miner that stops gives up at once"),
    case("looked", looked).about("calls go on while it is looked whether the engine is there"),
    case("cut", cut).about("an engine that goes away in the middle is unable, and comes back"),
    case("killed", killed)
        .about("containers end with a miner that is killed, and the next one removes them"),
    case("forgotten", forgotten)
        .about("containers of others are removed only when their time is long over"),
];

fn outcome(executed: &Executed, wanted: Outcome, reason: &str) -> anyhow::Result<()> {
    let told = executed.reason.as_deref().unwrap_or_default();
    let got = executed.answer.outcome;
    ensure!(
        got == wanted && told.contains(reason),
        "{got:?}: {told}; expected {wanted:?}: {reason}"
    );
    Ok(())
}

fn success(bench: &Bench<'_>) -> anyhow::Result<()> {
    let miner = bench.miner();
    let image = &bench.images.rogue;
    let executed = miner.tell(image, "echo hello");
    ensure!(text(&executed)? == "hello", "another answer");
    let Usage { input_tokens, output_tokens, fuel } = executed.answer.usage;
    ensure!((input_tokens, output_tokens) == (0, 0), "tokens that nobody told");
    ensure!(
        fuel > 0 && fuel.is_multiple_of(1_000_000),
        "{fuel} is no whole number of milliseconds"
    );
    let work = executed.work.context("work")?;
    ensure!(work.hash() == executed.answer.receipt_hash, "the receipt has another hash");
    let seen = &work.as_json()["steps"][0]["container"];
    ensure!(seen["image"] == image.as_str() && seen["status"] == 200, "{seen}");
    ensure!(seen["cpuMs"] == fuel / 1_000_000, "{seen}");
    let head = text(&miner.tell(image, "head"))?;
    let id = types::Hash::digest(b"call").to_string();
    ensure!(head.starts_with("post / http/1.1") && head.contains(&id), "{head}");
    miner.leaves_nothing()
}

fn example(bench: &Bench<'_>) -> anyhow::Result<()> {
    const ABI: &str = include_str!("../../examples/agents/container-json/agent.json");
    let abi: serde_json::Value = serde_json::from_str(ABI)?;
    let agent = agent(&bench.images.example, &abi["abi"].to_string());
    let miner = bench.miner();
    let select = |json: &str, selector: &str| {
        let arguments = serde_json::json!([json, selector]).to_string();
        miner.call(&agent, "select", &arguments, None)
    };
    let prices = r#"{"items": [{"price": "4.20", "tags": [1, null, "\u00e9\"x"]}]}"#;
    ensure!(text(&select(prices, "items[0].price"))? == "4.20", "a string");
    ensure!(text(&select(prices, "items[0].tags"))? == "[1,null,\"é\\\"x\"]", "a list");
    outcome(&select(prices, "items[1]"), Outcome::Failure, "there is nothing at \"1]\"")?;
    outcome(&select("{", "a"), Outcome::Failure, "the JSON is wrong at byte 1: expected a string")?;
    outcome(&select(&"[".repeat(5_000), ""), Outcome::Failure, "expected less depth")?;
    let payload = agent.metadata.methods.first().context("a method")?.selector().0.to_vec();
    outcome(&miner.run(&agent, &payload, None), Outcome::Failure, "no arguments of the method")?;
    outcome(
        &miner.run(&agent, b"none", None),
        Outcome::Failure,
        "calls none of the agent's methods",
    )
}

fn failure(bench: &Bench<'_>) -> anyhow::Result<()> {
    let (miner, image) = (bench.miner(), &bench.images.rogue);
    let executed = miner.tell(image, "status 404 there is no such thing");
    outcome(&executed, Outcome::Failure, "there is no such thing")?;
    ensure!(executed.answer.usage.fuel > 0 && executed.work.is_some(), "no work");
    outcome(&miner.tell(image, "status 499 "), Outcome::Failure, "with the status 499")?;
    let long = miner.tell(image, &format!("status 400 {}", "x".repeat(3_000)));
    outcome(&long, Outcome::Failure, "xxx")?;
    ensure!(long.reason.is_some_and(|it| it.len() == 1_024), "the reason is not cut");
    Ok(())
}

fn unable(bench: &Bench<'_>) -> anyhow::Result<()> {
    let (miner, image) = (bench.miner(), &bench.images.rogue);
    for status in ["500", "503", "302", "204", "201", "399", "600"] {
        let executed = miner.tell(image, &format!("status {status} x"));
        outcome(&executed, Outcome::Unable, "with the status")
            .or_else(|_| outcome(&executed, Outcome::Unable, "no answer of HTTP"))
            .with_context(|| status.to_owned())?;
        ensure!(executed.answer.usage == Usage::default(), "usage of who was unable");
    }
    outcome(&miner.tell(image, "status 200 x"), Outcome::Unable, "none of the method's outputs")?;
    for garbage in
        ["raw hello", "raw HTTP/1.1 200 OK|Content-Length: x||", "raw HTTP/9 1||", "raw "]
    {
        outcome(&miner.tell(image, garbage), Outcome::Unable, "gives no answer of HTTP")
            .with_context(|| garbage.to_owned())?;
    }
    // Without a length the end of the connection is that of the body.
    outcome(&miner.tell(image, "raw HTTP/1.1 404 No||none such"), Outcome::Failure, "none such")?;
    outcome(&miner.tell(image, "end"), Outcome::Unable, "ended with the code 3")
}

fn tokens(bench: &Bench<'_>) -> anyhow::Result<()> {
    let (miner, image) = (bench.miner(), &bench.images.rogue);
    let used = |order: &str| {
        let executed = miner.tell(image, order);
        let Usage { input_tokens, output_tokens, .. } = executed.answer.usage;
        text(&executed).map(|_| (input_tokens, output_tokens))
    };
    ensure!(used("tokens 100 10")? == (100, 10), "numbers");
    ensure!(used("tokens many -1")? == (0, 0), "no numbers");
    let executed = miner.tell(image, "tokens 101 1");
    outcome(&executed, Outcome::Failure, "the limit inputTokens of the call is reached")?;
    ensure!(executed.answer.usage == LIMITS.usage, "not the limits");
    outcome(&miner.tell(image, "tokens 1 11"), Outcome::Failure, "the limit outputTokens")
}

fn long(bench: &Bench<'_>) -> anyhow::Result<()> {
    let (miner, image) = (bench.miner(), &bench.images.rogue);
    let reached = "the limit resultBytes of the call is reached";
    let executed = miner.tell(image, "endless 200");
    outcome(&executed, Outcome::Failure, reached)?;
    let executed = miner.tell(image, &format!("echo {}", "x".repeat(2_000)));
    outcome(&executed, Outcome::Failure, reached)?;
    outcome(&miner.tell(image, "endless 400"), Outcome::Failure, "xxx")?;
    outcome(&miner.tell(image, "endless 500"), Outcome::Unable, "with the status 500")
}

fn wall(bench: &Bench<'_>) -> anyhow::Result<()> {
    let miner = bench.miner();
    let late = "the time that this miner has for it is over";
    let began = Instant::now();
    let until = began + Duration::from_secs(3);
    let executed = miner.tell_until(&bench.images.rogue, "hang", Some(until));
    outcome(&executed, Outcome::Unable, late)?;
    // Not only when the time is over that is set for every execution.
    ensure!(began.elapsed() < Duration::from_secs(10), "later than it was told");
    let began = Instant::now();
    let miner = bench.miner_with(ContainersConfig { wall_ms_max: 2_000, ..bench.config.clone() });
    outcome(&miner.tell(&bench.images.rogue, "hang"), Outcome::Unable, late)?;
    ensure!(began.elapsed() < Duration::from_secs(10), "later than is set");
    Ok(())
}

fn never(bench: &Bench<'_>) -> anyhow::Result<()> {
    let miner = bench.miner();
    let until = Some(Instant::now() + Duration::from_secs(2));
    let executed = miner.tell_until(&bench.images.never, "echo x", until);
    outcome(&executed, Outcome::Unable, "time that this miner has for it is over")?;
    outcome(&miner.tell(&bench.images.end, "echo x"), Outcome::Unable, "ended with the code 7")?;
    outcome(&miner.tell(&bench.images.empty, "echo x"), Outcome::Unable, "the container engine: ")?;
    miner.leaves_nothing()
}

fn fuel(bench: &Bench<'_>) -> anyhow::Result<()> {
    // Where much else is under way, five seconds of a processor take long.
    let config = ContainersConfig { wall_ms_max: LONG_MS, ..bench.config.clone() };
    let began = Instant::now();
    let executed = bench.miner_with(config).tell(&bench.images.rogue, "burn");
    outcome(&executed, Outcome::Failure, "the limit fuel of the call is reached")?;
    ensure!(executed.answer.usage == LIMITS.usage, "not the limits");
    // Five seconds of one processor.
    ensure!(began.elapsed() > Duration::from_secs(4), "before its time");
    Ok(())
}

fn fork(bench: &Bench<'_>) -> anyhow::Result<()> {
    let (miner, image) = (bench.miner(), &bench.images.rogue);
    let count: u64 = text(&miner.tell(image, "children"))?.parse()?;
    ensure!((1..bench.config.pids_max).contains(&count), "{count} processes");
    let until = Some(Instant::now() + Duration::from_secs(4));
    let executed = miner.tell_until(image, "bomb", until);
    ensure!(executed.answer.outcome != Outcome::Success, "the bomb answers");
    ensure!(text(&miner.tell(image, "echo still here"))? == "still here", "another answer");
    miner.leaves_nothing()?;
    wait_until("the last process to end", || {
        let bombs = Command::new("pgrep").args(["-cx", "rogue"]).output()?.stdout;
        Ok(String::from_utf8_lossy(&bombs).trim() == "0")
    })
}

fn memory(bench: &Bench<'_>) -> anyhow::Result<()> {
    let executed = bench.miner().tell(&bench.images.rogue, "memory");
    outcome(&executed, Outcome::Unable, "the container ended with the code 137, out of memory")
}

fn files(bench: &Bench<'_>) -> anyhow::Result<()> {
    let (miner, image) = (bench.miner(), &bench.images.rogue);
    ensure!(text(&miner.tell(image, "write"))? == "/tmp/x", "elsewhere");
    let filled: u64 = text(&miner.tell(image, "fill"))?.parse()?;
    ensure!(filled <= bench.config.tmp_mib_max, "{filled} MiB");
    Ok(())
}

fn rights(bench: &Bench<'_>) -> anyhow::Result<()> {
    let (miner, image) = (bench.miner(), &bench.images.rogue);
    let status = text(&miner.tell(image, "self"))?;
    for line in [
        "Uid:\t65534\t65534\t65534\t65534",
        "Gid:\t65534\t65534\t65534\t65534",
        "CapPrm:\t0000000000000000",
        "CapEff:\t0000000000000000",
        "CapBnd:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
    ] {
        ensure!(status.contains(line), "no {line:?} in {status}");
    }
    let reached = text(&miner.tell(image, "relay"))?;
    ensure!(reached.is_empty(), "of the relay {reached}");
    Ok(())
}

fn phone(bench: &Bench<'_>) -> anyhow::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:0")?;
    let port = listener.local_addr()?.port();
    let socket = UdpSocket::bind("8.8.8.8:53").or_else(|_| UdpSocket::bind("0.0.0.0:0"))?;
    // The machine as other machines know it, as its containers know it, and somebody outside.
    let known = |address: &str| {
        UdpSocket::bind("0.0.0.0:0").and_then(|it| {
            it.connect(address)?;
            it.local_addr().map(|own| own.ip().to_string())
        })
    };
    let own = known("192.0.2.1:9").unwrap_or_else(|_| "127.0.0.1".to_owned());
    let places = [own.as_str(), "172.17.0.1", "127.0.0.1", "169.254.169.254"];
    let places: Vec<_> = places.iter().map(|host| format!("{host}:{port}")).collect();
    let order = format!("phone {} 1.1.1.1:53 8.8.8.8:53", places.join(" "));
    let reached = text(&bench.miner().tell(&bench.images.rogue, &order))?;
    drop(socket);
    // A datagram to itself goes nowhere else.
    let own = format!("udp 127.0.0.1:{port}");
    ensure!(reached == own || reached.is_empty(), "{reached}");
    Ok(())
}

fn print(bench: &Bench<'_>) -> anyhow::Result<()> {
    let miner = bench.miner();
    ensure!(text(&miner.tell(&bench.images.rogue, "print"))? == "printed", "another answer");
    Ok(())
}

fn images(bench: &Bench<'_>) -> anyhow::Result<()> {
    let miner = bench.miner();
    ensure!(miner.missing(&bench.images.rogue).is_none(), "an image that is here");
    let volume = miner.missing(&bench.images.volume).context("an image with a volume")?;
    ensure!(volume.contains("declares volumes"), "{volume}");
    let executed = miner.tell(&bench.images.volume, "echo x");
    outcome(&executed, Outcome::Unable, "declares volumes")?;
    let other = format!("ombra-suite-agent@sha256:{}", "0".repeat(64));
    let unnamed = miner.missing(&other).context("an image that nobody named")?;
    ensure!(unnamed == format!("the executor {} is not here", executor_of(&other)), "{unnamed}");
    let mut config = bench.config.clone();
    config.images.push(other.clone());
    let missing = bench.miner_with(config).missing(&other).context("an image that is not here")?;
    ensure!(missing == format!("the image {other} is not here"), "{missing}");
    Ok(())
}

fn pull(bench: &Bench<'_>) -> anyhow::Result<()> {
    let other = format!("127.0.0.1:9/nothing@sha256:{}", "0".repeat(64));
    let images = vec![other.clone()];
    let config = ContainersConfig { images, pull: true, ..bench.config.clone() };
    let miner = bench.miner_with(config);
    outcome(&miner.tell(&other, "echo x"), Outcome::Unable, "the container engine: ")?;
    wait_until("the image to be missing", || {
        Ok(miner.missing(&other).is_some_and(|why| why.starts_with("the container engine: ")))
    })
}

fn stop(bench: &Bench<'_>) -> anyhow::Result<()> {
    let miner = bench.miner();
    std::thread::scope(|scope| {
        let hanging = scope.spawn(|| miner.tell(&bench.images.rogue, "hang"));
        wait_until("the containers to run", || Ok(containers(&own_label(), true)?.len() == 2))?;
        miner.stop.cancel();
        let executed = joined(hanging.join().map(Ok), "the executor")?;
        outcome(&executed, Outcome::Unable, "the miner stops")
    })?;
    miner.leaves_nothing()
}

fn looked(bench: &Bench<'_>) -> anyhow::Result<()> {
    let (miner, image) = (bench.miner(), &bench.images.rogue);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                miner.look();
            }
        });
        let answers = (0..4).map(|_| text(&miner.tell(image, "echo hello")));
        let answers = answers.collect::<anyhow::Result<Vec<_>>>();
        is_over.store(true, Ordering::Relaxed);
        ensure!(answers?.iter().all(|it| it == "hello"), "another answer");
        Ok(())
    })
}

fn cut(bench: &Bench<'_>) -> anyhow::Result<()> {
    let wire = Wire::new()?;
    let socket = wire.socket.clone();
    let miner = bench.miner_with(ContainersConfig { socket, ..bench.config.clone() });
    let image = &bench.images.rogue;
    ensure!(text(&miner.tell(image, "echo x"))? == "x", "another answer");
    wait_until("the containers to be removed", || Ok(containers(&own_label(), false)?.is_empty()))?;
    let began = std::thread::scope(|scope| {
        let hanging = scope.spawn(|| miner.tell(image, "hang"));
        wait_until("the containers to run", || Ok(containers(&own_label(), true)?.len() == 2))?;
        let began = Instant::now();
        wire.cut();
        let executed = joined(hanging.join().map(Ok), "the executor")?;
        outcome(&executed, Outcome::Unable, "")?;
        anyhow::Ok(began)
    })?;
    let took = began.elapsed();
    ensure!(took < Duration::from_secs(10), "it was noticed only when the time was over");
    wait_until("the containers to end", || Ok(containers(&own_label(), true)?.is_empty()))?;
    miner.look();
    let away = miner.missing(image).context("an engine that is away")?;
    ensure!(away.contains("the container engine"), "{away}");
    outcome(&miner.tell(image, "echo x"), Outcome::Unable, "the container engine")?;
    wire.mend();
    miner.look();
    ensure!(miner.missing(image).is_none(), "an engine that is back");
    ensure!(text(&miner.tell(image, "echo x"))? == "x", "another answer");
    bench.clock.forward(120_000);
    miner.look();
    miner.leaves_nothing()
}

fn killed(bench: &Bench<'_>) -> anyhow::Result<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--hang", &bench.images.rogue, &owner().to_string()])
        .stdout(Stdio::null())
        .spawn()?;
    let running = || containers(&own_label(), true);
    let ran = wait_until("the containers to run", || Ok(running()?.len() == 2));
    child.kill()?;
    child.wait()?;
    ran?;
    wait_until("the containers to end by themselves", || Ok(running()?.is_empty()))?;
    ensure!(containers(&own_label(), false)?.len() == 2, "somebody removed them");
    drop(bench.miner_of(Some(Address::new([8; 20])), bench.config.clone()));
    ensure!(containers(&own_label(), false)?.len() == 2, "another miner removed them");
    drop(bench.miner());
    ensure!(containers(&own_label(), false)?.is_empty(), "they are still there");
    Ok(())
}

fn forgotten(bench: &Bench<'_>) -> anyhow::Result<()> {
    let image = bench.images.rogue.rsplit_once('@').context("an id")?.1;
    let until_ms = 1_000_u64;
    let make = |label: &str, until_ms: u64| {
        let until = format!("ombra.until={until_ms}");
        docker(&["create", "--label", label, "--label", &until, image])
    };
    let now_ms = u64::try_from(std::time::UNIX_EPOCH.elapsed()?.as_millis())?;
    let old = make("ombra.miner=nobody", until_ms)?;
    let new = make("ombra.miner=nobody", now_ms)?;
    let foreign = docker(&["create", "--label", "somebody.else=1", image])?;
    drop(bench.miner_of(None, bench.config.clone()));
    let is_there = |id: &str| docker(&["inspect", id]).is_ok();
    let (is_old, is_new, is_foreign) = (is_there(&old), is_there(&new), is_there(&foreign));
    for id in [&new, &foreign] {
        docker(&["rm", id])?;
    }
    ensure!(!is_old, "the old one is there");
    ensure!(is_new && is_foreign, "containers of others were removed");
    Ok(())
}
