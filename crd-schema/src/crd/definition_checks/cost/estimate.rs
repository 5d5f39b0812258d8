//! Walks an expression and adds up its largest cost (`checker.Cost` of cel-go).

use super::argument::{Argument, CallCost, Entry};
use super::declared::{Declared, DeclaredSizes};
use super::functions::{LIST_COST, MAP_COST, MESSAGE_COST};
use super::path::{Path, Step};
use super::size::Size;
use super::{extensions, functions, library};
use crate::crd::definition_checks::cel_check::{Call, Checked};
use crate::crd::definition_checks::cel_overloads::Overload;
use crate::crd::definition_checks::cel_types::{Type, is_type_name};
use crate::crd::expression::qualified_name;
use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{
    ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr,
};
use std::collections::BTreeMap;

/// The cost of reading a variable or a field.
const READ_COST: u64 = 1;

/// The largest cost of a checked expression. `root` is the declaration of the variables `self` and `oldSelf`.
pub(in super::super) fn estimate(
    tree: &IdedExpr,
    checked: &Checked<'_>,
    root: Declared<'_>,
    sizes: &DeclaredSizes,
) -> u64 {
    let mut estimator = Estimator {
        checked,
        root,
        sizes,
        paths: BTreeMap::new(),
        known_sizes: BTreeMap::new(),
        entries: BTreeMap::new(),
        variables: Vec::new(),
    };
    estimator.cost(tree)
}

/// A variable of a loop.
#[derive(Debug)]
struct Variable<'t> {
    name: &'t str,
    path: Path<'t>,
    size: Option<Size>,
    entry: Option<Entry>,
}

#[derive(Debug)]
struct Estimator<'t, 'e, 's> {
    checked: &'e Checked<'s>,
    root: Declared<'s>,
    sizes: &'e DeclaredSizes,
    paths: BTreeMap<*const IdedExpr, Path<'t>>,
    known_sizes: BTreeMap<*const IdedExpr, Size>,
    entries: BTreeMap<*const IdedExpr, Entry>,
    /// The innermost last.
    variables: Vec<Variable<'t>>,
}

impl<'t, 's> Estimator<'t, '_, 's> {
    fn cost(&mut self, tree: &'t IdedExpr) -> u64 {
        match &tree.expr {
            Expr::Ident(name) => {
                let path = match self.variable(name) {
                    Some(variable) => variable.path.clone(),
                    None => Path::new(name),
                };
                self.paths.insert(tree, path);
                READ_COST
            }
            Expr::Select(select) => self.select(tree, select),
            Expr::Call(_) => self.call(tree),
            Expr::List(list) => self.list(tree, list),
            Expr::Map(map) => self.map(tree, map),
            Expr::Comprehension(all) if is_binding(all) => self.binding(tree, all),
            Expr::Comprehension(all) => self.comprehension(tree, all),
            Expr::Struct(message) => {
                let fields = message.entries.iter().map(|it| match &it.expr {
                    EntryExpr::StructField(field) => self.cost(&field.value),
                    EntryExpr::MapEntry(_) => 0,
                });
                fields.fold(MESSAGE_COST, u64::saturating_add)
            }
            Expr::Literal(_) | Expr::Unspecified => 0,
        }
    }

    fn select(&mut self, tree: &'t IdedExpr, select: &'t SelectExpr) -> u64 {
        if qualified_name(tree).is_some_and(|it| is_type_name(&it)) {
            self.paths.insert(tree, Path::new(&select.field));
            return READ_COST;
        }
        let mut cost = self.cost(&select.operand);
        // Kubernetes sets the cost of `has()` to that of its operand.
        if select.test {
            return cost;
        }
        let operand = self.checked.kind(&select.operand);
        if matches!(operand, Type::Map(..) | Type::Object(..) | Type::Metadata) {
            cost = cost.saturating_add(READ_COST);
        }
        let path = self.path(&select.operand).append(Step::Name(&select.field));
        self.paths.insert(tree, path);
        cost
    }

    fn list(&mut self, tree: &'t IdedExpr, list: &'t ListExpr) -> u64 {
        let mut cost = LIST_COST;
        let mut item: Option<Size> = None;
        for element in &list.elements {
            cost = cost.saturating_add(self.cost(element));
            let size = self.size_or_unknown(element);
            item = Some(item.map_or(size, |it| it.union(size)));
        }
        let entry = Entry {
            is_list: true,
            key: Size::fixed(1),
            value: item.unwrap_or(Size::fixed(0)),
        };
        self.entries.insert(tree, entry);
        cost
    }

    fn map(&mut self, tree: &'t IdedExpr, map: &'t MapExpr) -> u64 {
        let mut cost = MAP_COST;
        let (mut key, mut value): (Option<Size>, Option<Size>) = (None, None);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            cost = cost.saturating_add(self.cost(&entry.key));
            cost = cost.saturating_add(self.cost(&entry.value));
            let size = self.size_or_unknown(&entry.key);
            key = Some(key.map_or(size, |it| it.union(size)));
            let size = self.size_or_unknown(&entry.value);
            value = Some(value.map_or(size, |it| it.union(size)));
        }
        let entry = Entry {
            is_list: false,
            key: key.unwrap_or(Size::fixed(0)),
            value: value.unwrap_or(Size::fixed(0)),
        };
        self.entries.insert(tree, entry);
        cost
    }

    /// A variable that is set to a value once.
    fn binding(&mut self, tree: &'t IdedExpr, all: &'t ComprehensionExpr) -> u64 {
        let mut cost = self.cost(&all.iter_range);
        cost = cost.saturating_add(self.cost(&all.accu_init));
        self.bind(&all.accu_var, &all.accu_init);
        cost = cost.saturating_add(self.cost(&all.result));
        self.variables.pop();
        self.copy_sizes(tree, &all.result);
        cost
    }

    fn comprehension(&mut self, tree: &'t IdedExpr, all: &'t ComprehensionExpr) -> u64 {
        let range = &all.iter_range;
        let mut cost = self.cost(range);
        cost = cost.saturating_add(self.cost(&all.accu_init));
        let outside = self.variables.len();
        self.bind(&all.accu_var, &all.accu_init);
        self.bind_items(all);
        let condition = self.cost(&all.loop_cond);
        let step = self.cost(&all.loop_step);
        self.variables.truncate(outside.saturating_add(1));
        cost = cost.saturating_add(self.cost(&all.result));
        self.variables.truncate(outside);
        let count = self.size_or_unknown(range);
        let steps = count.max.saturating_mul(step.saturating_add(condition));
        match &all.accu_init.expr {
            Expr::Literal(_) => {
                let size = self.size(&all.accu_init);
                self.set_size(tree, size);
            }
            Expr::List(_) | Expr::Map(_) => {
                self.set_size(tree, Some(count));
                let entry = self.entry(&all.loop_step);
                self.set_entry(tree, entry);
            }
            _ => {}
        }
        cost.saturating_add(steps)
    }

    fn bind(&mut self, name: &'t str, value: &'t IdedExpr) {
        let variable = Variable {
            name,
            path: self.path(value),
            entry: self.entry(value),
            size: self.size(value),
        };
        self.variables.push(variable);
    }

    /// Adds the variables of a loop over keys, indices or items.
    fn bind_items(&mut self, all: &'t ComprehensionExpr) {
        let range = &all.iter_range;
        let entry = self.entry(range);
        let is_list = match entry {
            Some(entry) => entry.is_list,
            None => matches!(self.checked.kind(range), Type::List(_)),
        };
        let (key, value) = (entry.map(|it| it.key), entry.map(|it| it.value));
        let path = self.path(range);
        let mut push = |name, step, size| {
            let path = path.append(step);
            self.variables.push(Variable {
                name,
                path,
                size,
                entry: None,
            });
        };
        match (&all.iter_var2, is_list) {
            (Some(second), true) => {
                push(&all.iter_var, Step::Indices, key);
                push(second, Step::Items, value);
            }
            (Some(second), false) => {
                push(&all.iter_var, Step::Keys, key);
                push(second, Step::Values, value);
            }
            (None, true) => push(&all.iter_var, Step::Items, value),
            (None, false) => push(&all.iter_var, Step::Keys, key),
        }
    }

    fn call(&mut self, tree: &'t IdedExpr) -> u64 {
        let Expr::Call(call) = &tree.expr else {
            return 0;
        };
        if let ("dyn", [arg]) = (call.func_name.as_str(), call.args.as_slice()) {
            let cost = self.cost(arg).saturating_add(1);
            self.copy_sizes(tree, arg);
            return cost;
        }
        let Some(resolved) = self.checked.call(tree) else {
            return 0;
        };
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            args.push(self.argument(arg));
        }
        let target = call.target.as_deref().filter(|_| resolved.is_method);
        let mut target = target.map(|it| self.argument(it));
        if let Some(target) = &mut target {
            let path = target.path.append(Step::Items);
            if !target.path.is_empty() {
                target.item_size = self.sizes.size_at(self.root, &path);
            }
        }
        let mut cost: u64 = 0;
        let mut size: Option<Size> = None;
        for overload in &resolved.overloads {
            let call_cost = call_cost(resolved, *overload, target.as_ref(), &args);
            cost = cost.max(call_cost.cost);
            size = match (size, call_cost.size) {
                (Some(left), Some(right)) => Some(left.union(right)),
                (left, right) => left.or(right),
            };
            self.set_entry(tree, call_cost.entry);
            if let (Overload::IndexList | Overload::IndexMap, Some(container)) =
                (*overload, call.args.first())
            {
                size = self.entry(container).map(|it| it.value);
                let step = match overload {
                    Overload::IndexList => Step::Items,
                    _ => Step::Values,
                };
                let path = self.path(container).append(step);
                self.paths.insert(tree, path);
            }
            if size.is_none() {
                size = self.size(tree);
            }
        }
        self.set_size(tree, size);
        target.map_or(cost, |it| cost.saturating_add(it.cost))
    }

    fn argument(&mut self, tree: &'t IdedExpr) -> Argument<'t, 's> {
        let cost = self.cost(tree);
        Argument {
            tree: &tree.expr,
            kind: self.checked.kind(tree).clone(),
            path: self.path(tree),
            size: self.size(tree),
            entry: self.entry(tree),
            cost,
            item_size: None,
        }
    }

    fn variable(&self, name: &str) -> Option<&Variable<'t>> {
        self.variables.iter().rev().find(|it| it.name == name)
    }

    fn path(&self, tree: &IdedExpr) -> Path<'t> {
        if let Expr::Ident(name) = &tree.expr
            && let Some(variable) = self.variable(name)
        {
            return variable.path.clone();
        }
        let path = self.paths.get(&std::ptr::from_ref(tree));
        path.cloned().unwrap_or_default()
    }

    fn set_size(&mut self, tree: &IdedExpr, size: Option<Size>) {
        if let Some(size) = size {
            self.known_sizes.insert(tree, size);
        }
    }

    fn set_entry(&mut self, tree: &IdedExpr, entry: Option<Entry>) {
        if let Some(entry) = entry {
            self.entries.insert(tree, entry);
        }
    }

    fn copy_sizes(&mut self, tree: &IdedExpr, source: &IdedExpr) {
        let (size, entry) = (self.size(source), self.entry(source));
        self.set_size(tree, size);
        self.set_entry(tree, entry);
    }

    fn entry(&self, tree: &IdedExpr) -> Option<Entry> {
        if let Some(entry) = self.entries.get(&std::ptr::from_ref(tree)) {
            return Some(*entry);
        }
        match &tree.expr {
            Expr::Ident(name) => self.variable(name)?.entry,
            _ => None,
        }
    }

    fn size_or_unknown(&mut self, tree: &IdedExpr) -> Size {
        self.size(tree).unwrap_or(Size::UNKNOWN)
    }

    fn size(&mut self, tree: &IdedExpr) -> Option<Size> {
        if let Some(size) = self.known_sizes.get(&std::ptr::from_ref(tree)) {
            return Some(*size);
        }
        if let Some(size) = literal_size(&tree.expr) {
            return Some(size);
        }
        if let Some(size) = self.sizes.size_at(self.root, &self.path(tree)) {
            self.known_sizes.insert(tree, size);
            return Some(size);
        }
        if is_scalar(self.checked.kind(tree)) {
            return Some(Size::fixed(1));
        }
        match &tree.expr {
            Expr::Ident(name) => self.variable(name)?.size,
            _ => None,
        }
    }
}

/// The cost of a call with its arguments, without its target.
fn call_cost<'t, 's>(
    call: &Call,
    overload: Overload,
    target: Option<&Argument<'t, 's>>,
    args: &[Argument<'t, 's>],
) -> CallCost {
    let special = extensions::cost(overload, target, args)
        .or_else(|| library::cost(&call.name, overload, target, args));
    match special {
        Some(special) => CallCost {
            cost: special.cost.saturating_add(functions::sum(args)),
            ..special
        },
        None => functions::cost(overload, target, args),
    }
}

/// Whether a loop is only the binding of a variable.
fn is_binding(all: &ComprehensionExpr) -> bool {
    let is_empty = matches!(&all.iter_range.expr, Expr::List(list) if list.elements.is_empty());
    let is_never = matches!(
        &all.loop_cond.expr,
        Expr::Literal(LiteralValue::Boolean(flag)) if !flag.inner()
    );
    is_empty && is_never
}

fn literal_size(tree: &Expr) -> Option<Size> {
    let size = match tree {
        Expr::Literal(LiteralValue::String(text)) => text.inner().chars().count(),
        Expr::Literal(LiteralValue::Bytes(bytes)) => bytes.inner().len(),
        Expr::Literal(_) => 1,
        Expr::List(list) => list.elements.len(),
        Expr::Map(map) => map.entries.len(),
        _ => return None,
    };
    Some(Size::fixed(u64::try_from(size).unwrap_or(u64::MAX)))
}

fn is_scalar(kind: &Type<'_>) -> bool {
    match kind {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Time | Type::Uint => true,
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}
