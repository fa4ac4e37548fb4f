//! AGENT_REGISTER and AGENT_RETIRE: each rule by itself, their order, and what is kept.

use fixtures::retire;
use state::Forks;
use state::agents::{self, Filter};
use state::tables::{AgentTexts, AgentVersions, Agents, AgentsByOwner};
use types::tx::AgentRegister;
use types::{Agent, AgentVersion, Amount, Body, Code, Event, Hash, Params, Rejection};

use crate::agent_metadata::Sheet;
use crate::world::{
    ALICE, BOB, PROPOSER, STRANGER, V7, V8, Who, World, blob_chunk, blob_finalize, blob_init,
};

fn world() -> World {
    let mut world = World::with_forks(Params::default(), V8, &[(PROPOSER, 1)]);
    world.next_block();
    world
}

fn agent(world: &World, id: Hash) -> Agent {
    world.state().get::<Agents>(&id).unwrap().unwrap()
}

fn version(world: &World, id: Hash, version: &str) -> AgentVersion {
    world.state().get::<AgentVersions>(&(id, version.to_owned())).unwrap().unwrap()
}

/// Path and rule of the fault that a registration is refused for.
#[track_caller]
fn fault(rejection: &Rejection) -> (String, String) {
    assert_eq!(rejection.code(), Code::AgentMetadata, "{rejection}");
    let told = |wanted| rejection.extra().find(|(key, _)| *key == wanted).unwrap().1.to_owned();
    (told("path"), told("rule"))
}

/// Why ALICE cannot register an agent of the id zero with this text.
fn register(world: &mut World, metadata: &str) -> Rejection {
    let body = AgentRegister { agent_id: Hash::ZERO, metadata: metadata.to_owned() };
    world.send(ALICE, &Body::AgentRegister(body)).unwrap_err()
}

#[track_caller]
fn assert_fault(world: &mut World, who: Who, sheet: &Sheet, path: &str, rule: u8) {
    let rejection = world.send(who, &sheet.by(who)).unwrap_err();
    assert_eq!(fault(&rejection), (path.to_owned(), rule.to_string()), "{rejection}");
}

#[test]
fn registering_burns_its_fee_and_keeps_the_agent_its_version_and_its_text() {
    let mut world = world();
    let sheet = Sheet::model("judge", 7, &["math_eval".to_owned()]).royalty(250);
    let (text, id) = (sheet.text(), sheet.id(ALICE));
    let (before, burned) = (world.balance(ALICE), world.supply().burned.get());
    let tx = world.must(ALICE, &sheet.by(ALICE));
    let fee = 10_000 + 10 * u64::try_from(text.len()).unwrap();
    let place = before - world.balance(ALICE) - fee;
    assert!(place < 50, "what remains is the place in the block: {place}");
    assert_eq!(world.supply().burned.get(), burned + fee + place);
    let now = world.context().timestamp;
    let executed = world.next_block();
    let version = "1.0.0".to_owned();
    let event =
        Event::AgentRegistered { agent_id: id, owner: ALICE.address(), version: version.clone() };
    assert_eq!(executed.events.of_transaction(0), Some(&event));
    let expected = Agent {
        agent_id: id,
        owner: ALICE.address(),
        name: "judge".to_owned(),
        latest: version.clone(),
        versions: 1,
        is_retired: false,
        registered_at: now,
        changed_at: now,
    };
    assert_eq!(agent(&world, id), expected);
    let expected = AgentVersion {
        agent_id: id,
        version: version.clone(),
        previous: None,
        owner: ALICE.address(),
        executors: vec![format!("model-1:{}", Hash::new([7; 32]))],
        manifests: vec![Hash::new([7; 32])],
        selectors: vec![[0x26, 0x12, 0x1f, 0xf0]],
        tools: vec!["math_eval".to_owned()],
        royalty: Amount::new(250),
        is_deterministic: true,
        nesting: 1,
        metadata_hash: Hash::digest(text.as_bytes()),
        metadata_bytes: u64::try_from(text.len()).unwrap(),
        registered_at: now,
        tx: types::TxLocation { height: world.parent.height, position: 0 },
    };
    assert_eq!(self::version(&world, id, "1.0.0"), expected);
    let kept = world.state().get::<AgentTexts>(&(id, version)).unwrap();
    assert_eq!(kept, Some(text));
    assert_eq!(world.state().get::<AgentsByOwner>(&(ALICE.address(), id)).unwrap(), Some(()));
    assert!(tx.payload().contains("\"chainId\":\"test\""));
}

#[test]
fn a_later_version_has_precedence_over_every_earlier_one() {
    let mut world = world();
    let sheet = Sheet::model("judge", 7, &[]);
    let id = sheet.id(ALICE);
    for (new, is_taken) in [
        ("1.0.0-rc.1", true),
        ("1.0.0-alpha", false),
        ("1.0.0", true),
        ("1.0.0+build", false),
        ("1.0.0-rc.2", false),
        ("0.9.9", false),
        ("1.9.0", true),
        ("1.10.0", true),
        ("1.9.9", false),
        ("1.10.1+b", true),
    ] {
        let sheet = sheet.clone().version(new);
        if is_taken {
            let before = world.state().get::<Agents>(&id).unwrap().map(|agent| agent.latest);
            world.must(ALICE, &sheet.by(ALICE));
            assert_eq!(agent(&world, id).latest, new);
            assert_eq!(version(&world, id, new).previous, before);
        } else {
            assert_fault(&mut world, ALICE, &sheet, "/version", 2);
        }
    }
    assert_eq!(agent(&world, id).versions, 5);
    // The same name of another owner is another agent.
    let other = sheet.version("0.0.1");
    world.must(BOB, &other.by(BOB));
    assert_ne!(other.id(BOB), id);
}

#[test]
fn an_id_that_is_not_of_sender_and_name_is_refused_where_the_text_is_json_with_a_name() {
    let mut world = world();
    let of_bob = Sheet::model("judge", 7, &[]).by(BOB);
    assert_eq!(world.send(ALICE, &of_bob).unwrap_err().code(), Code::AgentIdMismatch);
    assert_eq!(register(&mut world, r#"{"name":"a"}"#).code(), Code::AgentIdMismatch);
    // A name that is too long makes an id all the same.
    let long = format!("{{\"name\":\"{}\"}}", "a".repeat(65));
    assert_eq!(register(&mut world, &long).code(), Code::AgentIdMismatch);
    for (metadata, path, rule) in [
        ("", "", "1"),
        ("[]", "", "1"),
        ("{\"a\":1,\"a\":2,\"name\":\"a\"}", "/a", "1"),
        ("{}", "/name", "2"),
        ("{\"name\":7}", "/description", "2"),
    ] {
        let rejection = register(&mut world, metadata);
        assert_eq!(fault(&rejection), (path.to_owned(), rule.to_owned()), "{metadata}");
    }
}

#[test]
fn what_the_state_knows_is_told_in_the_order_of_the_rules() {
    let mut world = world();
    world.must(ALICE, &Sheet::model("judge", 7, &[]).by(ALICE));
    let missing = format!("agent:{}@1.0.0", Hash::ZERO);
    let bad = Sheet::model("judge", 7, &[missing]).royalty(1_000_001);
    // The version of before, a tool that nobody has, and too high a royalty.
    assert_fault(&mut world, ALICE, &bad, "/version", 2);
    let bad = bad.version("2.0.0");
    assert_fault(&mut world, ALICE, &bad, "/executor/tools/0", 6);
    let bad = Sheet::model("judge", 7, &[]).version("2.0.0").royalty(1_000_001);
    assert_fault(&mut world, ALICE, &bad, "/royalty", 7);
    // What the text alone breaks before that comes before it.
    let bad = Sheet::model("judge", 7, &["x".to_owned()]).more("\"tags\":1");
    assert_fault(&mut world, ALICE, &bad, "/version", 2);
    assert_fault(&mut world, ALICE, &bad.version("2.0.0"), "/tags", 3);
    // The balance comes before all of it.
    let broke = Sheet::model("judge", 7, &[]).royalty(1_000_001).by(STRANGER);
    assert_eq!(world.refused(STRANGER, &broke), "INSUFFICIENT_BALANCE");
}

#[test]
fn the_program_of_an_agent_is_a_final_blob_of_at_most_4_mib() {
    let mut world = world();
    let sheet = Sheet::program("tool", "program", &[]);
    assert_fault(&mut world, ALICE, &sheet, "/executor/blobId", 6);
    world.must(BOB, &blob_init("program", &[1; 3]));
    world.must(BOB, &blob_chunk("program", 0, &[1; 3]));
    assert_fault(&mut world, ALICE, &sheet, "/executor/blobId", 6);
    world.must(BOB, &blob_finalize("program"));
    world.must(ALICE, &sheet.by(ALICE));
    let kept = version(&world, sheet.id(ALICE), "1.0.0");
    assert_eq!((kept.executors, kept.manifests), (vec!["wasm-1".to_owned()], Vec::new()));
    for (name, bytes) in [("largest", 4_194_304), ("larger", 4_194_305)] {
        world.must(BOB, &blob_init(name, &vec![1; bytes]));
        for (index, chunk) in (0..).zip(vec![1; bytes].chunks(400_000)) {
            if index % 5 == 0 {
                world.next_block();
            }
            world.must(BOB, &blob_chunk(name, index, chunk));
        }
        world.must(BOB, &blob_finalize(name));
    }
    world.must(ALICE, &Sheet::program("large", "largest", &[]).by(ALICE));
    let larger = Sheet::program("larger", "larger", &[]);
    assert_fault(&mut world, ALICE, &larger, "/executor/blobId", 6);
}

#[test]
fn an_agent_among_the_tools_is_there_and_deterministic_and_nests_three_deep() {
    let mut world = world();
    let first = Sheet::model("first", 1, &[]);
    let second = Sheet::model("second", 2, &["math_eval".to_owned(), first.tool(ALICE)]);
    assert_fault(&mut world, BOB, &second, "/executor/tools/1", 6);
    world.must(ALICE, &first.by(ALICE));
    // Another version of it is not there.
    let other = Sheet::model("second", 2, &[first.clone().version("1.0.1").tool(ALICE)]);
    assert_fault(&mut world, BOB, &other, "/executor/tools/0", 6);
    world.must(BOB, &second.by(BOB));
    let third = Sheet::model("third", 1, &[first.tool(ALICE), second.tool(BOB)]);
    world.must(ALICE, &third.by(ALICE));
    let kept = version(&world, third.id(ALICE), "1.0.0");
    let models = [1, 2].map(|manifest| format!("model-1:{}", Hash::new([manifest; 32])));
    assert_eq!((kept.nesting, kept.executors), (3, models.to_vec()), "each once, its own first");
    assert_eq!(kept.manifests, [1, 2].map(|manifest| Hash::new([manifest; 32])));
    let fourth = Sheet::model("fourth", 1, &[third.tool(ALICE)]);
    assert_fault(&mut world, ALICE, &fourth, "/executor/tools/0", 6);
    let container = Sheet::container("box");
    world.must(ALICE, &container.by(ALICE));
    assert!(!version(&world, container.id(ALICE), "1.0.0").is_deterministic);
    let boxed = Sheet::model("boxed", 1, &[container.tool(ALICE)]);
    assert_fault(&mut world, ALICE, &boxed, "/executor/tools/0", 6);
    // A retired one still serves as a tool.
    world.must(ALICE, &retire(first.id(ALICE)));
    world.must(ALICE, &Sheet::model("fifth", 1, &[first.tool(ALICE)]).by(ALICE));
}

#[test]
fn agents_among_the_tools_need_15_executors_at_most() {
    let mut world = world();
    let tools: Vec<String> = (0..16)
        .map(|number| {
            let sheet = Sheet::model(&format!("tool{number}"), number, &[]);
            world.must(ALICE, &sheet.by(ALICE));
            sheet.tool(ALICE)
        })
        .collect();
    let most = Sheet::model("most", 99, &tools[..15]);
    world.must(BOB, &most.by(BOB));
    assert_eq!(version(&world, most.id(BOB), "1.0.0").executors.len(), 16);
    let more = Sheet::model("more", 99, &tools);
    assert_fault(&mut world, BOB, &more, "/executor/tools/15", 6);
}

#[test]
fn only_the_owner_retires_an_agent_and_once() {
    let mut world = world();
    let sheet = Sheet::model("judge", 7, &[]);
    let id = sheet.id(ALICE);
    assert_eq!(world.refused(BOB, &retire(id)), "AGENT_NOT_FOUND");
    world.must(ALICE, &sheet.by(ALICE));
    assert_eq!(world.refused(BOB, &retire(id)), "NOT_AGENT_OWNER");
    world.next_block();
    world.must(ALICE, &retire(id));
    let changed = world.context().timestamp;
    assert_eq!(world.refused(BOB, &retire(id)), "NOT_AGENT_OWNER");
    assert_eq!(world.refused(ALICE, &retire(id)), "AGENT_RETIRED");
    let kept = agent(&world, id);
    assert_eq!((kept.is_retired, kept.changed_at, kept.versions), (true, changed, 1));
    assert!(kept.registered_at < changed);
    let executed = world.next_block();
    assert_eq!(executed.events.of_transaction(0), Some(&Event::AgentRetired { agent_id: id }));
}

#[test]
fn a_higher_version_makes_a_retired_agent_callable_again() {
    let mut world = world();
    let sheet = Sheet::model("judge", 7, &[]);
    world.must(ALICE, &sheet.by(ALICE));
    world.must(ALICE, &retire(sheet.id(ALICE)));
    assert_fault(&mut world, ALICE, &sheet, "/version", 2);
    assert!(agent(&world, sheet.id(ALICE)).is_retired);
    world.must(ALICE, &sheet.clone().version("1.0.1").by(ALICE));
    let kept = agent(&world, sheet.id(ALICE));
    assert_eq!((kept.is_retired, kept.versions), (false, 2));
}

#[test]
fn agents_wait_for_the_fork() {
    let forks = Forks { v8: Some(3), ..V7 };
    let mut world = World::with_forks(Params::default(), forks, &[(PROPOSER, 1)]);
    let sheet = Sheet::model("judge", 7, &[]);
    for _ in 0..2 {
        for body in [sheet.by(ALICE), retire(sheet.id(ALICE))] {
            assert_eq!(world.refused(ALICE, &body), "FORK_NOT_ACTIVE");
        }
        world.next_block();
    }
    world.must(ALICE, &sheet.by(ALICE));
}

#[test]
fn versions_are_told_from_the_latest_on() {
    let mut world = world();
    let sheet = Sheet::model("judge", 7, &[]);
    let id = sheet.id(ALICE);
    for version in ["1.0.0", "1.0.1", "1.2.0", "2.0.0-rc.1"] {
        world.must(ALICE, &sheet.clone().version(version).by(ALICE));
    }
    let versions = |from, limit| {
        let versions = agents::versions(world.state(), &id, from, limit).unwrap();
        versions.map(|it| it.into_iter().map(|version| version.version).collect::<Vec<_>>())
    };
    let all = ["2.0.0-rc.1", "1.2.0", "1.0.1", "1.0.0"].map(str::to_owned);
    assert_eq!(versions(None, 10).unwrap(), all);
    assert_eq!(versions(None, 2).unwrap(), all[..2]);
    assert_eq!(versions(Some("1.2.0"), 2).unwrap(), all[1..3]);
    assert_eq!(versions(Some("1.0.0"), 2).unwrap(), all[3..]);
    assert_eq!(versions(Some("3.0.0"), 2), None);
    assert_eq!(agents::versions(world.state(), &Hash::ZERO, None, 2).unwrap(), None);
    let found = agents::find(world.state(), &id, Some("1.0.1")).unwrap().unwrap();
    assert_eq!(found.text, sheet.version("1.0.1").text());
    assert_eq!(agents::find(world.state(), &id, Some("9.0.0")).unwrap(), None);
}

#[test]
fn a_page_of_agents_reads_64_kib_of_metadata_or_one_agent() {
    let mut world = world();
    let long = |bytes: usize| format!("\"x\":\"{}\"", "x".repeat(bytes));
    let sheets = ["one", "two", "three"].map(|name| Sheet::model(name, 7, &[]).more(&long(32_000)));
    let mut ids = sheets.each_ref().map(|sheet| {
        world.must(ALICE, &sheet.by(ALICE));
        sheet.id(ALICE)
    });
    ids.sort_unstable();
    let page = |after: Option<&Hash>| {
        let page = agents::list(world.state(), &Filter::default(), after, 50).unwrap();
        let ids: Vec<_> = page.agents.iter().map(|found| found.agent.agent_id).collect();
        (ids, page.next)
    };
    assert_eq!(page(None), (ids[..2].to_vec(), Some(ids[1])));
    assert_eq!(page(Some(&ids[1])), (ids[2..].to_vec(), None));
    let whole = Sheet::model("whole", 7, &[]).more(&long(65_000));
    world.must(BOB, &whole.by(BOB));
    let of_bob = Filter { owner: Some(BOB.address()), ..Filter::default() };
    let listed = agents::list(world.state(), &of_bob, None, 50).unwrap();
    assert_eq!((listed.agents.len(), listed.next), (1, None));
}

#[test]
fn agents_are_listed_by_what_their_latest_versions_are() {
    let mut world = world();
    let tags = "\"tags\":[\"Law\",\"text\"]";
    let judge = Sheet::model("judge", 7, &[]).more(tags);
    let clerk = Sheet::model("clerk", 8, &[]).more("\"tags\":[\"text\"]");
    let container = Sheet::container("box").more("\"tags\":[\"law\"]");
    for (who, sheet) in [(ALICE, &judge), (BOB, &clerk), (ALICE, &container)] {
        world.must(who, &sheet.by(who));
    }
    let (judge, clerk, container) = (judge.id(ALICE), clerk.id(BOB), container.id(ALICE));
    let listed = |filter: &Filter| {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = agents::list(world.state(), filter, after.as_ref(), 1).unwrap();
            assert!(page.agents.len() <= 1);
            all.extend(page.agents.into_iter().map(|found| found.agent.agent_id));
            after = page.next;
            if after.is_none() {
                return all;
            }
        }
    };
    let sorted = |mut ids: Vec<Hash>| {
        ids.sort_unstable();
        ids
    };
    let of_alice = || Filter { owner: Some(ALICE.address()), ..Filter::default() };
    let other = || Filter { is_deterministic: Some(false), ..of_alice() };
    let tag = |tag: &str| Filter { tag: Some(tag.to_owned()), ..Filter::default() };
    let text = |text: &str| Filter { text: Some(text.to_owned()), ..Filter::default() };
    let executor = Some(format!("model-1:{}", Hash::new([8; 32])));
    for (what, filter, expected) in [
        ("all", Filter::default(), vec![judge, clerk, container]),
        ("of ALICE", of_alice(), vec![judge, container]),
        ("the tag Law", tag("Law"), vec![judge]),
        ("the tag text", tag("text"), vec![judge, clerk]),
        ("a tag that has LAW", text("LAW"), vec![judge, container]),
        ("a name that has cLER", text("cLER"), vec![clerk]),
        ("the description", text("d"), vec![judge, clerk, container]),
        ("the executor", Filter { executor, ..Filter::default() }, vec![clerk]),
        ("not deterministic", other(), vec![container]),
        ("and the tag text", Filter { tag: Some("text".to_owned()), ..other() }, vec![]),
    ] {
        assert_eq!(listed(&filter), sorted(expected), "{what}");
    }
}
