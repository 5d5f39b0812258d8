//! The schemas of the registry.

use super::{KindRegistry, RuleSelection, SchemaSource};

#[test]
fn kind_registry_parses_every_schema() {
    let Ok(registry) = KindRegistry::new(&RuleSelection::default()) else {
        panic!("the schemas can be listed");
    };
    let mut count = 0;
    for (version, kinds) in &registry.kinds {
        for (name, kind) in kinds
            .iter()
            .filter(|(_, it)| !matches!(it.schema, SchemaSource::None))
        {
            assert!(kind.schema.get().is_some(), "{version} {name}");
            count += 1;
        }
    }
    assert_eq!(count, 17);
}
