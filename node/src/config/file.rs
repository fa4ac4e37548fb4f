//! `config.toml`, as this program writes it.

use super::layers::values;
use super::meanings::MEANINGS;
use super::settings::Config;

/// What the reader of a `config.toml` has to know, below its title.
const HEAD: &str = "\
# A line such as #log.filter = \"info\" is a setting that is not set, with its default when this file
# was written. To set it, remove the #. What is not set follows the default of the version that runs.
# Durations are in milliseconds, sizes in bytes; docs/operations.md section 12 says more of each setting.
# Write keys in full, as here: a [section] would change the keys of all lines below it.
# A flag beats the environment (OMBRA__SECTION__KEY), which beats this file.
# `ombra config show --home DIR` prints what is in force and where it came from.
";

/// The text of a file with every setting and its meaning. The settings in `chosen` are set, and those
/// whose values are not the defaults; all others are commented out, so that a later version may have a
/// better default.
#[must_use]
pub fn file_text(title: &str, config: &Config, chosen: &[&str]) -> String {
    let (values, defaults) = (values(config), values(&Config::default()));
    let settings = MEANINGS.iter().filter_map(|(key, meaning)| {
        let value = values.get(*key)?;
        let is_set = chosen.contains(key) || defaults.get(*key) != Some(value);
        let mark = if is_set { "" } else { "#" };
        Some(format!("\n# {meaning}\n{mark}{key} = {value}\n"))
    });
    let settings: Vec<String> = settings.collect();
    format!("# {title}\n{HEAD}{}", settings.concat())
}

#[cfg(test)]
mod tests {
    //! What is written can be read, and sets what was chosen and nothing else.

    use std::collections::BTreeSet;

    use super::super::layers::{Origin, load};
    use super::*;

    /// Reads a text as the file of a home; answers the settings, and the keys that the file sets.
    fn read(text: &str) -> (Config, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        let effective = load(&[], Some(&path), std::iter::empty(), &[]).unwrap();
        let set = effective.origins.into_iter();
        let set = set.filter(|(_, (_, origin))| *origin == Origin::File(path.clone()));
        (effective.config, set.map(|(key, _)| key).collect())
    }

    #[test]
    fn every_setting_has_one_meaning_and_no_other_has_one() {
        let config = values(&Config::default());
        let known: BTreeSet<_> = config.keys().map(String::as_str).collect();
        let explained: BTreeSet<_> = MEANINGS.iter().map(|(key, _)| *key).collect();
        assert_eq!(known, explained);
        assert_eq!(known.len(), MEANINGS.len());
    }

    #[test]
    fn a_new_file_sets_nothing_and_has_every_default_behind_a_mark() {
        let text = file_text("Settings.", &Config::default(), &[]);
        assert!(text.starts_with("# Settings.\n"), "{text}");
        assert_eq!((Config::default(), Vec::new()), read(&text));
        let all = text.lines().map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') => setting,
            _ => line,
        });
        let all = all.collect::<Vec<_>>().join("\n");
        let (config, set) = read(&all);
        assert_eq!((Config::default(), MEANINGS.len()), (config, set.len()));
    }

    #[test]
    fn what_was_chosen_is_set_even_if_it_is_the_default() {
        let mut config = Config::default();
        config.p2p.peers = vec!["/ip4/192.0.2.1/tcp/30777".to_owned()];
        config.snapshots.interval_blocks = 7;
        let text = file_text("Settings.", &config, &["rpc.listen", "p2p.peers"]);
        let set = ["p2p.peers", "rpc.listen", "snapshots.interval_blocks"].map(str::to_owned);
        assert_eq!((config, set.to_vec()), read(&text));
    }
}
