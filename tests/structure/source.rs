//! The source files of a crate with their module paths, and the resolution of paths to the files that define them.

use cargo_metadata::{Metadata, Package};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::{Item, UseTree, Visibility};

/// A re-export chain longer than this is a mistake of the resolver, not of the code.
const ALIAS_DEPTH_MAX: usize = 16;

/// A crate target: a library or a binary.
pub(crate) struct Target {
    /// The package and, of a binary, its name.
    pub(crate) name: String,
    /// In the order in which the modules are declared; the root comes first.
    pub(crate) files: Vec<SourceFile>,
    modules: BTreeMap<Vec<String>, Module>,
}

/// A parsed source file.
pub(crate) struct SourceFile {
    /// Relative to the repository.
    pub(crate) path: String,
    /// Each inline or file module in this file with its items, tests left out.
    pub(crate) modules: Vec<(Vec<String>, Vec<Item>)>,
}

#[derive(Default)]
struct Module {
    file: usize,
    /// Items that are defined here.
    items: BTreeMap<String, usize>,
    /// Names that a `use` declaration brings in: the path as written.
    aliases: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
}

/// All library and binary targets of the workspace. Test targets and build scripts are left out.
pub(crate) fn targets(metadata: &Metadata) -> Vec<Target> {
    let root = metadata.workspace_root.as_std_path();
    let mut found = Vec::new();
    for package in metadata.workspace_packages() {
        for target in &package.targets {
            if target.is_lib() || target.is_bin() {
                let name = target_name(package, &target.name);
                found.push(Target::load(name, target.src_path.as_std_path(), root));
            }
        }
    }
    found
}

fn target_name(package: &Package, target: &str) -> String {
    if package.name.replace('-', "_") == target.replace('-', "_") {
        package.name.to_string()
    } else {
        format!("{}/{target}", package.name)
    }
}

impl Target {
    /// Parses the file at `entry` and every file that it declares as a module.
    pub(crate) fn load(name: String, entry: &Path, repository: &Path) -> Self {
        let mut target = Self {
            name,
            files: Vec::new(),
            modules: BTreeMap::new(),
        };
        let folder = entry.parent().unwrap().to_owned();
        target.load_file(entry, &folder, &[], repository);
        target
    }

    fn load_file(&mut self, path: &Path, folder: &Path, module: &[String], repository: &Path) {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let index = self.files.len();
        let relative = path.strip_prefix(repository).unwrap_or(path);
        self.files.push(SourceFile {
            path: relative.display().to_string(),
            modules: Vec::new(),
        });
        self.add_module(index, module, parsed.items, folder, repository);
    }

    fn add_module(
        &mut self,
        file: usize,
        path: &[String],
        items: Vec<Item>,
        folder: &Path,
        repository: &Path,
    ) {
        let mut module = Module {
            file,
            ..Module::default()
        };
        let mut kept = Vec::new();
        let mut children = Vec::new();
        for item in items {
            if is_test_only(&item) {
                continue;
            }
            if let Some(name) = defined_name(&item) {
                module.items.insert(name, file);
            }
            match item {
                Item::Use(declaration) => {
                    let mut prefix = Vec::new();
                    collect_use(
                        &declaration.tree,
                        &mut prefix,
                        &mut module.aliases,
                        &mut module.globs,
                    );
                    kept.push(Item::Use(declaration));
                }
                Item::Mod(child) => children.push(child),
                other => kept.push(other),
            }
        }
        self.modules.insert(path.to_vec(), module);
        self.files[file].modules.push((path.to_vec(), kept));
        for child in children {
            let name = child.ident.to_string();
            let mut child_path = path.to_vec();
            child_path.push(name.clone());
            let child_folder = folder.join(&name);
            if let Some((_, items)) = child.content {
                self.add_module(file, &child_path, items, &child_folder, repository);
            } else {
                let file_path = module_file(&child.attrs, folder, &name);
                self.load_file(&file_path, &child_folder, &child_path, repository);
            }
        }
    }

    /// The file that defines what `path` names, seen from `module`; `None` where the path leaves the crate.
    pub(crate) fn resolve(&self, module: &[String], path: &[String]) -> Option<usize> {
        self.resolve_at(module, path, 0)
    }

    fn resolve_at(&self, module: &[String], path: &[String], depth: usize) -> Option<usize> {
        if depth > ALIAS_DEPTH_MAX {
            return None;
        }
        let (mut at, mut rest) = match path.split_first() {
            Some((first, rest)) if first == "crate" => (Vec::new(), rest),
            _ => (module.to_vec(), path),
        };
        while let Some((first, after)) = rest.split_first() {
            match first.as_str() {
                "self" => {}
                "super" => {
                    at.pop()?;
                }
                name => return self.resolve_name(&at, name, after, depth),
            }
            rest = after;
        }
        self.modules.get(&at).map(|found| found.file)
    }

    fn resolve_name(
        &self,
        at: &[String],
        name: &str,
        after: &[String],
        depth: usize,
    ) -> Option<usize> {
        let mut child = at.to_vec();
        child.push(name.to_owned());
        if self.modules.contains_key(&child) {
            return match after {
                [] => self.modules.get(&child).map(|found| found.file),
                _ => self.resolve_at(&child, after, depth + 1),
            };
        }
        let module = self.modules.get(at)?;
        if let Some(file) = module.items.get(name) {
            return Some(*file);
        }
        if let Some(alias) = module.aliases.get(name) {
            // `use serde::Serialize` names another crate: its first segment is no module of this one.
            if alias.first().is_some_and(|first| first == name) && alias.len() == 1 {
                return None;
            }
            let mut full = alias.clone();
            full.extend_from_slice(after);
            return self.resolve_at(at, &full, depth + 1);
        }
        module.globs.iter().find_map(|glob| {
            let mut full = glob.clone();
            full.push(name.to_owned());
            full.extend_from_slice(after);
            self.resolve_at(at, &full, depth + 1)
        })
    }
}

/// The path of every leaf of a `use` tree.
pub(crate) fn use_paths(tree: &UseTree) -> Vec<Vec<String>> {
    let (mut aliases, mut globs) = (BTreeMap::new(), Vec::new());
    collect_use(tree, &mut Vec::new(), &mut aliases, &mut globs);
    aliases.into_values().chain(globs).collect()
}

/// Whether a declaration only passes names on.
pub(crate) fn is_re_export(visibility: &Visibility) -> bool {
    !matches!(visibility, Visibility::Inherited)
}

fn collect_use(
    tree: &UseTree,
    prefix: &mut Vec<String>,
    aliases: &mut BTreeMap<String, Vec<String>>,
    globs: &mut Vec<Vec<String>>,
) {
    let mut leaf = |name: &syn::Ident, alias: &syn::Ident| {
        let mut path = prefix.clone();
        if name != "self" {
            path.push(name.to_string());
        }
        let alias = if alias == "self" {
            path.last().cloned().unwrap_or_default()
        } else {
            alias.to_string()
        };
        // `_` is given to traits: keep each.
        let key = if alias == "_" { path.join("::") } else { alias };
        aliases.insert(key, path);
    };
    match tree {
        UseTree::Path(inner) => {
            prefix.push(inner.ident.to_string());
            collect_use(&inner.tree, prefix, aliases, globs);
            prefix.pop();
        }
        UseTree::Name(name) => leaf(&name.ident, &name.ident),
        UseTree::Rename(rename) => leaf(&rename.ident, &rename.rename),
        UseTree::Glob(_) => globs.push(prefix.clone()),
        UseTree::Group(group) => {
            for inner in &group.items {
                collect_use(inner, prefix, aliases, globs);
            }
        }
    }
}

fn module_file(attributes: &[syn::Attribute], folder: &Path, name: &str) -> PathBuf {
    for attribute in attributes {
        if attribute.path().is_ident("path")
            && let syn::Meta::NameValue(pair) = &attribute.meta
            && let syn::Expr::Lit(literal) = &pair.value
            && let syn::Lit::Str(text) = &literal.lit
        {
            return folder.join(text.value());
        }
    }
    let flat = folder.join(format!("{name}.rs"));
    if flat.exists() {
        flat
    } else {
        folder.join(name).join("mod.rs")
    }
}

fn is_test_only(item: &Item) -> bool {
    attributes(item).iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| {
                list.tokens
                    .to_string()
                    .replace(' ', "")
                    .split([',', '(', ')'])
                    .any(|word| word == "test")
            })
    })
}

fn attributes(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

fn defined_name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(it) => it.ident.to_string(),
        Item::Enum(it) => it.ident.to_string(),
        Item::Fn(it) => it.sig.ident.to_string(),
        Item::Macro(it) => it.ident.as_ref()?.to_string(),
        Item::Static(it) => it.ident.to_string(),
        Item::Struct(it) => it.ident.to_string(),
        Item::Trait(it) => it.ident.to_string(),
        Item::Type(it) => it.ident.to_string(),
        Item::Union(it) => it.ident.to_string(),
        _ => return None,
    })
}
