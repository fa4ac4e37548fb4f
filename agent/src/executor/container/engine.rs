//! The engine: what is asked of it, each with a bound of time.

use std::path::PathBuf;
use std::time::Duration;

use bollard::models::{ContainerCreateBody, ImageInspect};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, CreateImageOptionsBuilder,
    InspectContainerOptions, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
    StartContainerOptions, StatsOptionsBuilder,
};
use bollard::{ClientVersion, Docker};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use tokio::time::timeout;

use super::plan::{OWNER_LABEL, UNTIL_LABEL};
use super::relay::RelayImage;

/// How long the engine may take for what it does within moments.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take to get an image.
const PULL_PATIENCE: Duration = Duration::from_secs(900);
/// What this program says that it speaks, the first that an engine understands: engines refuse what is
/// newer than they are, and of late also what is much older.
const VERSIONS: [ClientVersion; 2] = [
    ClientVersion { major_version: 1, minor_version: 44 },
    ClientVersion { major_version: 1, minor_version: 41 },
];

/// Why the engine has not done something, as a sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum EngineError {
    /// What it said, or that it is not there.
    #[error("the container engine: {0}")]
    Engine(#[from] bollard::errors::Error),
    /// It took too long.
    #[error("the container engine does not answer in time")]
    Late,
    /// An image cannot be run here.
    #[error("{0}")]
    Image(String),
}

impl EngineError {
    /// Whether there is no such thing.
    fn is_absence(&self) -> bool {
        use bollard::errors::Error::DockerResponseServerError as Said;
        matches!(self, Self::Engine(Said { status_code: 404, .. }))
    }

    /// Whether the engine is about to do it already.
    fn is_under_way(&self) -> bool {
        use bollard::errors::Error::DockerResponseServerError as Said;
        matches!(self, Self::Engine(Said { status_code: 409, .. }))
    }
}

/// A connection to an engine, which may come and go.
#[derive(Debug)]
pub(super) struct Engine {
    socket: PathBuf,
    known: Mutex<Option<Known>>,
}

/// What is known of an engine that answered.
#[derive(Clone, Debug)]
struct Known {
    docker: Docker,
    relay: RelayImage,
}

/// A container that is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) id: String,
    pub(super) owner: String,
    pub(super) until_ms: u64,
}

/// What became of a container's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) code: i64,
    /// Whether it took more memory than it may.
    pub(super) is_out_of_memory: bool,
}

/// Both ends of a container's input and output.
pub(super) type Pipes = bollard::container::AttachContainerResults;

impl Engine {
    /// Nothing is asked yet.
    pub(super) const fn new(socket: PathBuf) -> Self {
        Self { socket, known: Mutex::new(None) }
    }

    /// Greets the engine anew, and sees to it that it has the relay.
    ///
    /// # Errors
    /// When it does not answer, or has a processor for which there is no relay.
    pub(super) async fn greet(&self) -> Result<(), EngineError> {
        let met = self.meet().await;
        // Until then calls go on with the connection that they have.
        *self.known.lock() = met.as_ref().ok().cloned();
        met.map(drop)
    }

    async fn meet(&self) -> Result<Known, EngineError> {
        let docker = self.connect().await?;
        let version = within(PATIENCE, docker.version()).await?;
        let architecture = version.arch.unwrap_or_default();
        let relay = RelayImage::of(&architecture).ok_or_else(|| {
            EngineError::Image(format!("there is no relay for the processor {architecture:?}"))
        })?;
        let known = Known { docker, relay };
        relay_image(&known).await?;
        Ok(known)
    }

    async fn connect(&self) -> Result<Docker, EngineError> {
        let path = self.socket.display().to_string();
        let mut refused = None;
        for version in &VERSIONS {
            let docker = Docker::connect_with_unix(&path, PATIENCE.as_secs(), version)?;
            match within(PATIENCE, docker.ping()).await {
                Ok(_) => return Ok(docker),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or(EngineError::Late))
    }

    fn known(&self) -> Result<Known, EngineError> {
        let away = || EngineError::Image("the container engine does not answer".to_owned());
        self.known.lock().clone().ok_or_else(away)
    }

    /// The id of the relay's image, which the engine has then.
    pub(super) async fn relay(&self) -> Result<String, EngineError> {
        relay_image(&self.known()?).await
    }

    /// The id of an image that the engine has; none if it has not.
    ///
    /// # Errors
    /// Also when the image may not be run.
    pub(super) async fn image(&self, reference: &str) -> Result<Option<String>, EngineError> {
        let docker = self.known()?.docker;
        let digest = reference.rsplit_once('@').map_or(reference, |(_, digest)| digest);
        for name in [reference, digest] {
            let found = within(PATIENCE, docker.inspect_image(name)).await;
            match found {
                Ok(image) if is_of(&image, digest) => return usable(image).map(Some),
                Ok(_) => (),
                Err(error) if error.is_absence() => (),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Gets an image.
    pub(super) async fn pull(&self, reference: &str) -> Result<(), EngineError> {
        let docker = self.known()?.docker;
        let (name, digest) = reference.rsplit_once('@').unwrap_or((reference, "latest"));
        // With a digest a tag says nothing more.
        let name = match name.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => name,
            Some(_) | None => name,
        };
        let options = CreateImageOptionsBuilder::default().from_image(name).tag(digest).build();
        let pulled =
            docker.create_image(Some(options), None, None).try_for_each(|_| async { Ok(()) });
        within(PULL_PATIENCE, pulled).await
    }

    /// Makes a container of this name.
    pub(super) async fn create(
        &self,
        name: &str,
        body: ContainerCreateBody,
    ) -> Result<(), EngineError> {
        let docker = self.known()?.docker;
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        within(PATIENCE, docker.create_container(Some(options), body)).await.map(drop)
    }

    /// Starts a container.
    pub(super) async fn start(&self, name: &str) -> Result<(), EngineError> {
        let docker = self.known()?.docker;
        within(PATIENCE, docker.start_container(name, None::<StartContainerOptions>)).await
    }

    /// The input and output of a container.
    pub(super) async fn attach(&self, name: &str) -> Result<Pipes, EngineError> {
        let docker = self.known()?.docker;
        let options = AttachContainerOptionsBuilder::default();
        let options = options.stream(true).stdin(true).stdout(true).build();
        within(PATIENCE, docker.attach_container(name, Some(options))).await
    }

    /// The processor time of a running container, in nanoseconds; none of one that does not run.
    pub(super) async fn cpu_ns(&self, name: &str) -> Result<Option<u64>, EngineError> {
        let docker = self.known()?.docker;
        let options = StatsOptionsBuilder::default().stream(false).one_shot(true).build();
        let mut stats = docker.stats(name, Some(options)).boxed();
        let read = timeout(PATIENCE, stats.next()).await.map_err(|_late| EngineError::Late)?;
        let usage = read.transpose()?.and_then(|it| it.cpu_stats).and_then(|it| it.cpu_usage);
        Ok(usage.and_then(|it| it.total_usage).filter(|ns| *ns > 0))
    }

    /// What became of a container, once its process has ended.
    pub(super) async fn ended(&self, name: &str) -> Result<Option<Ended>, EngineError> {
        let docker = self.known()?.docker;
        let asked = docker.inspect_container(name, None::<InspectContainerOptions>);
        let state = within(PATIENCE, asked).await?.state.unwrap_or_default();
        let has_ended = state.running == Some(false)
            && state.finished_at.is_some()
            && state.status != Some(bollard::models::ContainerStateStatusEnum::CREATED);
        Ok(has_ended.then(|| Ended {
            code: state.exit_code.unwrap_or_default(),
            is_out_of_memory: state.oom_killed == Some(true),
        }))
    }

    /// Ends a container and removes it with everything that was made for it; nothing if there is none.
    pub(super) async fn remove(&self, name: &str) -> Result<(), EngineError> {
        let docker = self.known()?.docker;
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        match within(PATIENCE, docker.remove_container(name, Some(options))).await {
            Err(error) if !error.is_absence() && !error.is_under_way() => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The containers of all miners.
    pub(super) async fn left(&self) -> Result<Vec<Left>, EngineError> {
        let docker = self.known()?.docker;
        let filters = [("label".to_owned(), vec![OWNER_LABEL.to_owned()])].into_iter().collect();
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let all = within(PATIENCE, docker.list_containers(Some(options))).await?;
        let left = all.into_iter().filter_map(|container| {
            let labels = container.labels.unwrap_or_default();
            let label = |name: &str| labels.get(name).cloned().unwrap_or_default();
            let until_ms = label(UNTIL_LABEL).parse().unwrap_or_default();
            Some(Left { id: container.id?, owner: label(OWNER_LABEL), until_ms })
        });
        Ok(left.collect())
    }
}

/// The id of the relay's image, imported if it is not there.
async fn relay_image(known: &Known) -> Result<String, EngineError> {
    let Known { docker, relay } = known;
    let name = relay.reference();
    let inspect = || within(PATIENCE, docker.inspect_image(&name));
    match inspect().await {
        Err(error) if error.is_absence() => {
            let options = CreateImageOptionsBuilder::default().from_src("-").repo(relay.name);
            let files = bollard::body_full(Bytes::from(relay.files.clone()));
            let options = Some(options.tag(&relay.tag).build());
            let made = docker.create_image(options, Some(files), None);
            within(PATIENCE, made.try_for_each(|_| async { Ok(()) })).await?;
        }
        Ok(image) => return id_of(image),
        Err(error) => return Err(error),
    }
    id_of(inspect().await?)
}

fn id_of(image: ImageInspect) -> Result<String, EngineError> {
    image.id.ok_or_else(|| EngineError::Image("the container engine names no id".to_owned()))
}

/// Whether it is the image with this digest, be it that of its manifest or of its configuration.
fn is_of(image: &ImageInspect, digest: &str) -> bool {
    let is_it = |name: &String| name.rsplit_once('@').is_some_and(|(_, it)| it == digest);
    image.id.as_deref() == Some(digest) || image.repo_digests.iter().flatten().any(is_it)
}

/// The id of an image that may be run.
fn usable(image: ImageInspect) -> Result<String, EngineError> {
    let volumes = image.config.as_ref().and_then(|config| config.volumes.as_ref());
    if volumes.is_some_and(|volumes| !volumes.is_empty()) {
        let why = "the image declares volumes, which would be room on the disk without a bound";
        return Err(EngineError::Image(why.to_owned()));
    }
    id_of(image)
}

async fn within<T>(
    patience: Duration,
    asked: impl Future<Output = Result<T, bollard::errors::Error>>,
) -> Result<T, EngineError> {
    Ok(timeout(patience, asked).await.map_err(|_late| EngineError::Late)??)
}

#[cfg(test)]
mod tests {
    //! Which image is the one that metadata name.

    use bollard::models::ImageConfig;

    use super::*;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn image(id: &str, digests: &[&str]) -> ImageInspect {
        ImageInspect {
            id: Some(id.to_owned()),
            repo_digests: Some(digests.iter().map(|it| (*it).to_owned()).collect()),
            ..ImageInspect::default()
        }
    }

    #[test]
    fn an_image_is_known_by_its_digest_or_its_id_and_by_nothing_else() {
        assert!(is_of(&image(DIGEST, &[]), DIGEST));
        assert!(is_of(&image("sha256:ff", &[&format!("agents/echo@{DIGEST}")]), DIGEST));
        assert!(!is_of(&image("sha256:ff", &["agents/echo@sha256:ff"]), DIGEST));
        assert!(!is_of(&image("sha256:ff", &[&format!("{DIGEST}@sha256:ff")]), DIGEST));
    }

    #[test]
    fn an_image_with_volumes_is_not_run() {
        let with = |volumes: Vec<String>| ImageInspect {
            config: Some(ImageConfig { volumes: Some(volumes), ..ImageConfig::default() }),
            ..image(DIGEST, &[])
        };
        assert_eq!(usable(with(Vec::new())).expect("no volumes"), DIGEST);
        let why = usable(with(vec!["/data".to_owned()])).expect_err("volumes").to_string();
        assert!(why.contains("declares volumes"), "{why}");
    }
}
