//! A confined program, from outside: what it can still do and what it cannot.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use super::{Confinement, Wrapper};
use crate::tools::tests::support::sandbox_program;

fn confinement(folder: &Path) -> Confinement {
    Confinement {
        read: Vec::new(),
        write: vec![folder.to_owned()],
        network: false,
        memory_bytes_max: 256 << 20,
        file_bytes_max: 1 << 20,
        files_max: 32,
    }
}

/// What becomes of a script of Python, confined.
fn python(confinement: &Confinement, script: &str) -> Output {
    let wrapper = Wrapper { program: sandbox_program(), arguments: Vec::new() };
    let program = ["python3", "-c", script].map(str::to_owned);
    wrapper.command(confinement, &program).unwrap().output().unwrap()
}

/// The last line that a script's failure says.
fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn a_confined_program_reads_and_writes_only_where_it_may() {
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let secret = other.path().join("secret");
    std::fs::write(&secret, "key").unwrap();
    let own_file = own.path().join("note");
    let mut confinement = confinement(own.path());

    let write = |path: &Path| format!("open({path:?}, 'w').write('x')");
    let read = format!("print(open({secret:?}).read())");
    assert!(python(&confinement, &write(&own_file)).status.success());
    assert_eq!(std::fs::read_to_string(&own_file).unwrap(), "x");

    assert!(complaint(&python(&confinement, &read)).contains("PermissionError"));
    for path in [&secret, &other.path().join("new")] {
        assert!(complaint(&python(&confinement, &write(path))).contains("PermissionError"));
    }
    let environment = format!("open('/proc/{}/environ', 'rb').read()", std::process::id());
    assert!(complaint(&python(&confinement, &environment)).contains("PermissionError"));
    assert!(complaint(&python(&confinement, "open('/etc/fstab')")).contains("PermissionError"));

    confinement.read.push(other.path().to_owned());
    assert_eq!(python(&confinement, &read).stdout, b"key\n");
    assert!(complaint(&python(&confinement, &write(&secret))).contains("PermissionError"));
}

#[test]
fn a_confined_program_may_not_run_what_it_brings_unless_it_is_in_a_folder_of_its_own() {
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let confinement = confinement(own.path());
    for (folder, may) in [(&own, true), (&other, false)] {
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        let run = format!("import subprocess; subprocess.run([{script:?}], check=True)");
        assert_eq!(python(&confinement, &run).status.success(), may);
    }
}

#[test]
fn a_confined_program_has_no_tcp_unless_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("import socket; socket.create_connection(('127.0.0.1', {port}))");
    let listen = "import socket; socket.create_server(('127.0.0.1', 0))";
    let mut confinement = confinement(folder.path());
    for script in [&connect, listen] {
        assert!(complaint(&python(&confinement, script)).contains("PermissionError"), "{script}");
    }
    confinement.network = true;
    for script in [&connect, listen] {
        assert!(python(&confinement, script).status.success(), "{script}");
    }
}

#[test]
fn the_resources_of_a_confined_program_are_limited() {
    let folder = tempfile::tempdir().unwrap();
    let confinement = confinement(folder.path());
    let memory = "x = bytearray(300 << 20)";
    assert!(complaint(&python(&confinement, memory)).contains("MemoryError"));
    let file = format!("open({:?}, 'wb').write(bytes(2 << 20))", folder.path().join("f"));
    assert!(!python(&confinement, &file).status.success());
    assert!(std::fs::metadata(folder.path().join("f")).unwrap().len() <= 1 << 20);
    let files = "x = [open('/dev/null') for _ in range(40)]";
    assert!(complaint(&python(&confinement, files)).contains("Too many open files"));
    let few = "x = [open('/dev/null') for _ in range(8)]; y = bytearray(50 << 20)";
    assert!(python(&confinement, few).status.success());
}

#[test]
fn what_cannot_be_confined_is_not_started() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("ran");
    let mut confinement = confinement(folder.path());
    confinement.read.push("/not/there".into());
    let output = python(&confinement, &format!("open({trace:?}, 'w')"));
    assert!(complaint(&output).contains("/not/there"), "{output:?}");
    assert!(!trace.exists());

    let run = |arguments: &[&str]| {
        let output = std::process::Command::new(sandbox_program()).args(arguments).output();
        complaint(&output.unwrap())
    };
    assert!(run(&[]).contains("Confinement("));
    assert!(run(&["{}", "/bin/true"]).contains("Confinement("));
    confinement.read.clear();
    let good = serde_json::to_string(&confinement).unwrap();
    assert!(run(&[&good]).contains("NoProgram"));
    assert!(run(&[&good, "/not/there"]).contains("Start {"));
}
