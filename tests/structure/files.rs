//! File cycles: two files of a crate must not import each other, directly or through others.

use crate::source::{Target, is_re_export, use_paths};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// The groups of files that import each other, each sorted. A parent module wires its children: its imports of them do
/// not count here; what its children import from it is the subject of [`parents_with_shared_items`].
pub(crate) fn cycles(target: &Target) -> Vec<Vec<String>> {
    let mut edges = imports(target);
    for (from, to) in &mut edges {
        to.retain(|to| !is_ancestor(target, *from, *to));
    }
    strongly_connected(target.files.len(), &edges)
        .into_iter()
        .filter(|group| group.len() > 1)
        .map(|group| {
            let mut paths: Vec<String> = group
                .iter()
                .map(|file| target.files[*file].path.clone())
                .collect();
            paths.sort();
            paths
        })
        .collect()
}

/// The modules that define items their own children use, while they use their children: each is a cycle of two files.
pub(crate) fn parents_with_shared_items(target: &Target) -> BTreeSet<String> {
    let edges = imports(target);
    let mut found = BTreeSet::new();
    for (from, to) in &edges {
        for ancestor in to
            .iter()
            .filter(|ancestor| is_ancestor(target, **ancestor, *from))
        {
            if edges[ancestor]
                .iter()
                .any(|child| is_ancestor(target, *ancestor, *child))
            {
                found.insert(target.files[*ancestor].path.clone());
            }
        }
    }
    found
}

fn is_ancestor(target: &Target, ancestor: usize, file: usize) -> bool {
    let module = |file: usize| &target.files[file].modules[0].0;
    ancestor != file && module(file).starts_with(module(ancestor))
}

/// Which file uses items that which other file defines.
pub(crate) fn imports(target: &Target) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut edges: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (index, file) in target.files.iter().enumerate() {
        let mut used = BTreeSet::new();
        for (module, items) in &file.modules {
            let mut paths = PathCollector::default();
            for item in items {
                match item {
                    syn::Item::Use(declaration) if is_re_export(&declaration.vis) => {}
                    syn::Item::Use(declaration) => paths.found.extend(use_paths(&declaration.tree)),
                    other => paths.visit_item(other),
                }
            }
            used.extend(
                paths
                    .found
                    .iter()
                    .filter_map(|path| target.resolve(module, path)),
            );
        }
        used.remove(&index);
        edges.insert(index, used);
    }
    edges
}

#[derive(Default)]
struct PathCollector {
    found: Vec<Vec<String>>,
}

impl<'ast> Visit<'ast> for PathCollector {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.found.push(
                path.segments
                    .iter()
                    .map(|segment| segment.ident.to_string())
                    .collect(),
            );
        }
        visit::visit_path(self, path);
    }

    /// `pub(super)` names the parent without importing from it.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_item_use(&mut self, declaration: &'ast syn::ItemUse) {
        self.found.extend(use_paths(&declaration.tree));
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        collect_tokens(call.tokens.clone(), &mut self.found);
    }
}

/// The paths in the arguments of a macro, which the parser leaves as tokens.
fn collect_tokens(tokens: TokenStream, found: &mut Vec<Vec<String>>) {
    let mut path: Vec<String> = Vec::new();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                if colons != 2 && !path.is_empty() {
                    found.push(std::mem::take(&mut path));
                }
                path.push(ident.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            other => {
                found.extend((!path.is_empty()).then(|| std::mem::take(&mut path)));
                colons = 0;
                if let TokenTree::Group(group) = other {
                    collect_tokens(group.stream(), found);
                }
            }
        }
    }
    found.extend((!path.is_empty()).then_some(path));
}

/// Tarjan's algorithm, without recursion on the call stack beyond the length of the longest import chain.
pub(crate) fn strongly_connected(
    count: usize,
    edges: &BTreeMap<usize, BTreeSet<usize>>,
) -> Vec<Vec<usize>> {
    let mut search = Search {
        edges,
        order: vec![None; count],
        low: vec![0; count],
        open: Vec::new(),
        is_open: vec![false; count],
        groups: Vec::new(),
        next: 0,
    };
    for start in 0..count {
        if search.order[start].is_none() {
            search.enter(start);
        }
    }
    search.groups
}

struct Search<'a> {
    edges: &'a BTreeMap<usize, BTreeSet<usize>>,
    order: Vec<Option<usize>>,
    low: Vec<usize>,
    open: Vec<usize>,
    is_open: Vec<bool>,
    groups: Vec<Vec<usize>>,
    next: usize,
}

impl Search<'_> {
    fn enter(&mut self, node: usize) {
        self.order[node] = Some(self.next);
        self.low[node] = self.next;
        self.next += 1;
        self.open.push(node);
        self.is_open[node] = true;
        for other in self.edges.get(&node).into_iter().flatten() {
            match self.order[*other] {
                None => {
                    self.enter(*other);
                    self.low[node] = self.low[node].min(self.low[*other]);
                }
                Some(order) if self.is_open[*other] => self.low[node] = self.low[node].min(order),
                Some(_) => {}
            }
        }
        if Some(self.low[node]) == self.order[node] {
            let start = self.open.iter().position(|open| *open == node).unwrap();
            let group = self.open.split_off(start);
            for member in &group {
                self.is_open[*member] = false;
            }
            self.groups.push(group);
        }
    }
}
