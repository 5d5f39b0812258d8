//! The change codes, one row each. The table in `docs/crd-diff.md` is generated from them.

use super::ChangeClass;
use std::fmt;

/// The row of a change code.
#[derive(Debug)]
pub struct ChangeCodeInfo {
    /// The code.
    pub code: ChangeCode,
    /// The id, which is never reused.
    pub id: &'static str,
    /// The name, such as `version-removed`.
    pub name: &'static str,
    /// The class, unless the location of the change implies another one.
    pub class: ChangeClass,
    /// The consequence for clients and stored objects.
    pub meaning: &'static str,
    /// The remedy.
    pub advice: &'static str,
}

macro_rules! codes {
    ($($code:ident $id:literal $name:literal $class:ident $meaning:literal $advice:literal)*) => {
        /// The code of a change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ChangeCode {
            $(#[doc = $meaning] $code,)*
        }

        /// All change codes, sorted by id.
        pub const CODES: &[ChangeCodeInfo] = &[
            $(ChangeCodeInfo {
                code: ChangeCode::$code,
                id: $id,
                name: $name,
                class: ChangeClass::$class,
                meaning: $meaning,
                advice: $advice,
            },)*
        ];

        impl ChangeCode {
            /// The row of the code.
            #[must_use]
            pub const fn info(self) -> ChangeCodeInfo {
                match self {
                    $(Self::$code => ChangeCodeInfo {
                        code: self,
                        id: $id,
                        name: $name,
                        class: ChangeClass::$class,
                        meaning: $meaning,
                        advice: $advice,
                    },)*
                }
            }
        }
    };
}

impl ChangeCode {
    /// The id, such as `CD012`.
    #[must_use]
    pub const fn id(self) -> &'static str {
        self.info().id
    }

    /// The class, unless the location of the change implies another one.
    #[must_use]
    pub const fn class(self) -> ChangeClass {
        self.info().class
    }
}

impl fmt::Display for ChangeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.info();
        write!(f, "{} {}", info.id, info.name)
    }
}

codes! {
    DefinitionAdded "CD001" "definition-added" Compatible
        "a kind is new" "nothing"
    DefinitionRemoved "CD002" "definition-removed" Breaking
        "the API server deletes all objects of the kind and no longer serves it" "keep the definition, and stop serving its versions first"
    ScopeChanged "CD003" "scope-changed" Breaking
        "the API server rejects the update; deleting and recreating the definition deletes all objects" "create a new kind"
    NamesChanged "CD004" "names-changed" Breaking
        "clients request a kind or a path that does not exist" "create a new kind"
    ShortNameRemoved "CD005" "short-name-removed" Breaking
        "commands that use the short name fail" "keep the short name"
    AliasAdded "CD006" "alias-added" Compatible
        "the kind has one more short name or category" "nothing"
    CategoryRemoved "CD007" "category-removed" Compatible
        "the kind is no longer listed with the category" "nothing"
    ConversionChanged "CD008" "conversion-changed" Compatible
        "versions are converted differently" "make sure that the webhook's conversions match the schemas"
    ConversionRemoved "CD009" "conversion-removed" Breaking
        "objects of other versions are returned with only apiVersion changed" "keep the conversion webhook as long as there are several versions"
    PruningBegun "CD010" "pruning-begun" Breaking
        "fields that the schema does not list are dropped from all objects" "add the fields that are in use to the schema first"

    VersionAdded "CD011" "version-added" Compatible
        "clients may use one more version" "nothing"
    VersionRemoved "CD012" "version-removed" Breaking
        "clients of a served version get 404" "deprecate it, stop serving it in a later release, and remove it when no client requests it"
    StoredVersionRemoved "CD013" "stored-version-removed" Breaking
        "the API server rejects the update while status.storedVersions lists the version" "rewrite all objects in the new storage version, and remove the version from status.storedVersions"
    UnservedVersionRemoved "CD014" "unserved-version-removed" NeedsStorageMigration
        "no client could request the version, but objects may be stored in it" "check status.storedVersions, and rewrite the objects if it lists the version"
    VersionNoLongerServed "CD015" "version-no-longer-served" Breaking
        "clients of the version get 404" "deprecate it a release earlier"
    VersionServed "CD016" "version-served" Compatible
        "clients may use a version that was not served" "nothing"
    StorageVersionChanged "CD017" "storage-version-changed" NeedsStorageMigration
        "objects stay stored in the old version until they are written again" "rewrite all objects before you remove the old version"
    DeprecationChanged "CD018" "deprecation-changed" Compatible
        "the deprecation warning for clients of the version changes" "nothing"
    StatusAdded "CD019" "status-subresource-added" Breaking
        "writes of the object no longer change its status, and writes of /status change nothing else" "let controllers write /status first, in a new version"
    StatusRemoved "CD020" "status-subresource-removed" Breaking
        "writes of /status get 404, and every client that may write the object may write its status" "keep it"
    ScaleAdded "CD021" "scale-subresource-added" Compatible
        "the kind can be scaled" "nothing"
    ScaleChanged "CD022" "scale-subresource-changed" Breaking
        "autoscalers read or write another field, or get 404" "keep it"
    SelectableFieldAdded "CD023" "selectable-field-added" Compatible
        "clients may use one more field in field selectors" "nothing"
    SelectableFieldRemoved "CD024" "selectable-field-removed" Breaking
        "requests with a field selector on the field are rejected" "keep it"
    ColumnsChanged "CD025" "columns-changed" Compatible
        "kubectl get shows other columns" "nothing"

    FieldAdded "CD031" "field-added" Compatible
        "clients may set one more field; old clients ignore it" "nothing"
    FieldRemoved "CD032" "field-removed" Breaking
        "values that clients set are dropped, clients that read the field find none, and stored values are lost at the next write" "keep the field and mark it deprecated, or add a new version with a conversion"
    RequiredFieldAdded "CD033" "required-field-added" Breaking
        "writes without the field are rejected" "make it optional, or give it a default"
    RequiredAdded "CD034" "required-added" Breaking
        "writes without the field are rejected" "give it a default, or require it in a new version"
    RequiredWithDefaultAdded "CD035" "required-with-default-added" Compatible
        "the field is required, and defaulted where it is missing" "nothing"
    RequiredRemoved "CD036" "required-removed" Compatible
        "clients may omit the field; clients that read it may find none" "make sure that clients that read objects can handle it"
    FieldUntyped "CD037" "field-untyped" Compatible
        "the field accepts any value" "make sure that clients that read objects can handle it"
    FieldTyped "CD038" "field-typed" Breaking
        "a field that accepted any value now has a schema" "make sure that all stored values match the schema"
    EntriesAllowed "CD039" "entries-allowed" Compatible
        "clients may set entries with any name" "nothing"
    EntriesRemoved "CD040" "entries-removed" Breaking
        "entries with other names are dropped" "keep additionalProperties"
    UnknownKept "CD041" "unknown-fields-kept" Compatible
        "fields that the schema does not list are kept" "nothing"
    UnknownDropped "CD042" "unknown-fields-dropped" Breaking
        "fields that the schema does not list are dropped" "add the fields that are in use to the schema"
    EmbeddedChanged "CD043" "embedded-resource-changed" Breaking
        "apiVersion, kind and metadata become required, or are dropped" "add a new field"
    TypeChanged "CD044" "type-changed" Breaking
        "writes with the old type are rejected, or typed clients that expect it cannot decode lists of the kind" "add a new field"
    NullableAdded "CD045" "nullable-added" Compatible
        "null is kept instead of dropped; clients may read it" "make sure that clients that read objects can handle it"
    NullableRemoved "CD046" "nullable-removed" Breaking
        "null is dropped: the field is defaulted or missing" "keep nullable"

    EnumWidened "CD051" "enum-widened" Compatible
        "clients may set more values, and may read them" "make sure that clients can handle unknown values"
    EnumNarrowed "CD052" "enum-narrowed" Breaking
        "writes with a removed value are rejected" "keep the value, and warn when it is used"
    BoundLoosened "CD053" "bound-loosened" Compatible
        "more values are accepted" "nothing"
    BoundTightened "CD054" "bound-tightened" Breaking
        "writes with values beyond the bound are rejected" "tighten it in a new version, or by a CEL rule that accepts unchanged values"
    PatternRemoved "CD055" "pattern-removed" Compatible
        "any string is accepted" "nothing"
    PatternChanged "CD056" "pattern-changed" Breaking
        "writes with strings that do not match are rejected; the patterns cannot be compared" "tighten it in a new version, or by a CEL rule that accepts unchanged values"
    FormatLoosened "CD057" "format-loosened" Compatible
        "more values are accepted, or the API server does not validate the format" "nothing"
    FormatChanged "CD058" "format-changed" Breaking
        "writes with values of another format are rejected" "tighten it in a new version"
    JunctorLoosened "CD059" "junctor-loosened" Compatible
        "more values are accepted" "nothing"
    JunctorChanged "CD060" "junctor-changed" Breaking
        "writes may be rejected; the old and the new clauses cannot be compared" "use a CEL rule that accepts unchanged values instead"
    ListTypeChanged "CD061" "list-type-changed" Breaking
        "duplicate items may be rejected, and server-side apply merges the list differently or replaces it" "add a new field"
    MapTypeChanged "CD062" "map-type-changed" Breaking
        "server-side apply merges the object differently or replaces it" "add a new field"

    DefaultAdded "CD071" "default-added" Breaking
        "an omitted field has another meaning, in stored objects too" "set it by a webhook when objects are created, or in a new version"
    DefaultRemoved "CD072" "default-removed" Breaking
        "clients find no value where there always was one" "keep the default"
    DefaultChanged "CD073" "default-changed" Breaking
        "the same manifest creates a different object, and stored objects without the field change" "change it in a new version"
    DefaultOfRequiredAdded "CD074" "default-of-required-added" Compatible
        "a required field may be omitted" "nothing"
    DefaultUnderBound "CD075" "default-under-bound" Breaking
        "the default of a new field is rejected by its own schema, or may be by maxProperties, an enum, a junctor or a CEL rule above it" "remove the default"

    RuleAdded "CD081" "rule-added" Breaking
        "writes of objects that violate the rule are rejected" "accept unchanged values: set optionalOldSelf, and add equality with oldSelf as an alternative"
    RatchetingRuleAdded "CD082" "ratcheting-rule-added" Compatible
        "stored values pass until they change; new and changed values must meet the rule" "nothing"
    TransitionRuleAdded "CD083" "transition-rule-added" Breaking
        "updates that violate the rule are rejected" "accept unchanged values, or add the rule in a new version"
    RuleRemoved "CD084" "rule-removed" Compatible
        "more values are accepted" "nothing"
    RuleMessageChanged "CD085" "rule-message-changed" Compatible
        "the message of a rejection changes" "nothing"
    DescriptionChanged "CD086" "description-changed" Compatible
        "the output of kubectl explain changes" "nothing"
}
