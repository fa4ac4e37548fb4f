//! Files that can only be understood together: each of them leads, by what it names, to each of the others.
//!
//! A file depends on the file that *defines* what it names. A path that a module re-exports is followed to
//! its definition, so a `mod.rs` that only declares and re-exports is in no circle.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds of items are not exhaustive, and few of them matter here"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, UseTree};

use super::{assert_none, root};

/// The most files of a circle.
const CIRCLE_MAX: usize = 3;

/// A path from the root of a crate, such as `["tx", "Kind"]`.
type Names = Vec<String>;

/// What a glob imports.
const ALL: &str = "*";

/// What a module says in its own file, tests left out.
#[derive(Debug, Default)]
struct Module {
    /// The position of its file in [`Crate::files`].
    file: usize,
    children: BTreeSet<String>,
    defined: BTreeSet<String>,
    imported: BTreeMap<String, Names>,
    globs: Vec<Names>,
    /// Every path that it names and that may lead into the crate.
    named: BTreeSet<Names>,
}

/// The modules of a crate.
#[derive(Debug, Default)]
struct Crate {
    files: Vec<PathBuf>,
    modules: BTreeMap<Names, Module>,
}

impl Crate {
    fn read(main: &Path) -> Self {
        let mut read = Self::default();
        read.add_file(main, Names::new());
        read
    }

    fn add_file(&mut self, path: &Path, name: Names) {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        self.files.push(path.to_owned());
        self.add_module(self.files.len() - 1, name, &parsed.items);
    }

    fn add_module(&mut self, file: usize, name: Names, items: &[Item]) {
        let mut module = Module { file, ..Module::default() };
        for item in items {
            match item {
                Item::Mod(child) if !is_for_tests(&child.attrs) => {
                    let ident = child.ident.to_string();
                    let inner = joined(&name, &[&ident]);
                    match &child.content {
                        Some((_, items)) => self.add_module(file, inner, items),
                        None => self.add_file(&file_of(&self.files[file], &ident), inner),
                    }
                    module.children.insert(ident);
                }
                Item::Mod(_) => {}
                _ => {
                    module.defined.extend(name_of(item));
                    Reader { name: &name, module: &mut module }.visit_item(item);
                }
            }
        }
        self.modules.insert(name, module);
    }

    /// The file that defines the item that `path` names; none if that is a module or not in this crate.
    /// `depth` ends the search where globs re-export each other.
    fn definition(&self, path: &[String], depth: usize) -> Option<usize> {
        let mut module = self.modules.get(&Names::new())?;
        for (index, name) in path.iter().enumerate() {
            if name == ALL {
                return Some(module.file);
            }
            if module.children.contains(name) {
                module = self.modules.get(&path[..=index])?;
                continue;
            }
            if module.defined.contains(name) {
                return Some(module.file);
            }
            let imported = module.imported.get(name).map(|target| (target, index + 1));
            let globs = module.globs.iter().map(|target| (target, index));
            let targets = imported.into_iter().chain(globs);
            return targets.filter(|_| depth > 0).find_map(|(target, rest)| {
                let target = [target.as_slice(), &path[rest..]].concat();
                self.definition(&target, depth - 1)
            });
        }
        None
    }

    /// For each file, the files that define what it names.
    fn arrows(&self) -> Vec<BTreeSet<usize>> {
        const DEPTH: usize = 16;
        let mut arrows = vec![BTreeSet::new(); self.files.len()];
        for module in self.modules.values() {
            let named = module.named.iter().filter_map(|path| self.definition(path, DEPTH));
            arrows[module.file].extend(named.filter(|file| *file != module.file));
        }
        arrows
    }

    /// The circles, each with the paths of its files below `folder`.
    fn circles(&self, folder: &Path) -> BTreeSet<Vec<String>> {
        let arrows = self.arrows();
        let reached: Vec<_> = (0..arrows.len()).map(|file| reached(&arrows, file)).collect();
        let circle = |file: usize| {
            let both = reached[file].iter().filter(|other| reached[**other].contains(&file));
            both.map(|other| relative(&self.files[*other], folder)).collect()
        };
        (0..arrows.len()).filter(|file| reached[*file].contains(file)).map(circle).collect()
    }
}

fn relative(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}

/// The files to which the arrows lead from a file.
fn reached(arrows: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        open.extend(arrows[file].iter().filter(|next| seen.insert(**next)));
    }
    seen
}

fn joined(first: &[String], more: &[&str]) -> Names {
    first.iter().cloned().chain(more.iter().map(ToString::to_string)).collect()
}

/// Where the module that a file declares is.
fn file_of(parent: &Path, child: &str) -> PathBuf {
    let is_face = ["mod.rs", "lib.rs", "main.rs"].iter().any(|name| parent.ends_with(name));
    let folder = if is_face { parent.with_file_name("") } else { parent.with_extension("") };
    let file = folder.join(child).with_extension("rs");
    if file.exists() { file } else { folder.join(child).join("mod.rs") }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute.meta.require_list().map(|list| list.tokens.to_string());
        attribute.path().is_ident("cfg") && condition.is_ok_and(|condition| condition == "test")
    })
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Collects the paths that an item of a module names.
struct Reader<'a> {
    name: &'a [String],
    module: &'a mut Module,
}

impl Reader<'_> {
    /// The path from the root of the crate.
    fn absolute(&self, path: &[String]) -> Names {
        match path.first().map(String::as_str) {
            Some("crate") => path[1..].to_vec(),
            Some("self") => [self.name, &path[1..]].concat(),
            Some("super") => {
                let levels = path.iter().take_while(|name| *name == "super").count();
                let above = self.name.len().saturating_sub(levels);
                [&self.name[..above], &path[levels..]].concat()
            }
            _ => [self.name, path].concat(),
        }
    }

    fn import(&mut self, tree: &UseTree, before: &[String]) {
        let (target, alias) = match tree {
            UseTree::Path(path) => {
                return self.import(&path.tree, &joined(before, &[&path.ident.to_string()]));
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.import(tree, before));
            }
            UseTree::Glob(_) => {
                let target = self.absolute(before);
                self.module.named.insert(joined(&target, &[ALL]));
                self.module.globs.push(target);
                return;
            }
            UseTree::Name(name) if name.ident == "self" => {
                (before.to_vec(), before.last().cloned())
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                (joined(before, &[&name]), Some(name))
            }
            UseTree::Rename(name) => {
                (joined(before, &[&name.ident.to_string()]), Some(name.rename.to_string()))
            }
        };
        let target = self.absolute(&target);
        self.module.named.insert(target.clone());
        self.module.imported.extend(alias.map(|alias| (alias, target)));
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes: &[Attribute] = match item {
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.import(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Names = path.segments.iter().map(|part| part.ident.to_string()).collect();
        // A single name is defined here or was imported.
        if names.len() > 1 {
            self.module.named.insert(self.absolute(&names));
        }
        visit::visit_path(self, path);
    }
}

/// The circles of the crate whose sources are in `folder`.
fn circles_of(folder: &Path) -> BTreeSet<Vec<String>> {
    let mains = ["lib.rs", "main.rs"].map(|name| folder.join(name));
    let main = mains.iter().find(|path| path.exists());
    let main = main.unwrap_or_else(|| panic!("{} holds a crate", folder.display()));
    Crate::read(main).circles(folder)
}

#[test]
fn no_more_than_three_files_of_a_crate_depend_on_each_other() {
    let folders = fs::read_dir(root()).expect("the repository can be read");
    let mut faults = Vec::new();
    for folder in folders.map(|entry| entry.expect("the repository can be read").path()) {
        let sources = folder.join("src");
        if sources.is_dir() {
            let circles = circles_of(&sources);
            let large = circles.iter().filter(|files| files.len() > CIRCLE_MAX);
            faults
                .extend(large.map(|files| format!("{}: {}", sources.display(), files.join(", "))));
        }
    }
    assert_none(&faults, "circles of files; move what they share into a file below them");
}

#[test]
fn a_circle_is_seen_through_what_modules_export_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write("lib.rs", "mod face; mod user; #[cfg(test)] mod tests;");
    write("face/mod.rs", "mod deep; pub use deep::Deep;");
    write("face/deep.rs", "use crate::user; pub struct Deep; fn f() { user::g() }");
    write("user.rs", "use crate::face; pub fn g() { }");
    assert_eq!(circles_of(folder.path()), BTreeSet::new(), "the name of a module is no dependency");
    write("user.rs", "use crate::face; pub fn g() { let _ = face::Deep; }");
    let expected = vec!["face/deep.rs".to_owned(), "user.rs".to_owned()];
    assert_eq!(circles_of(folder.path()), BTreeSet::from([expected]));
}
