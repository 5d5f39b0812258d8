//! The fields that the upgrade of Kueue's objects moves.

use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue;
use lockkeeper_policies::finding::Finding;

/// Replaces the path of a field that the upgrade moved by its path in the file.
pub fn restore_field_path(finding: &mut Finding, moved: &[kueue::MovedField]) {
    let pointer = finding.field.pointer();
    if let Some(field) = moved.iter().find(|it| it.to == pointer) {
        let names = field.from.split('/').skip(1);
        finding.field = names.fold(FieldPath::default(), FieldPath::named);
    }
}
