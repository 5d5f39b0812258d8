//! The kinds of changes: one row each, which the page `docs/crd-diff.md` repeats.

use super::ChangeClass;
use std::fmt;

/// What is known of a kind of change.
#[derive(Debug)]
pub struct ChangeCodeInfo {
    /// The kind.
    pub code: ChangeCode,
    /// Its id, which is never used again.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// How bad it is, unless the place says otherwise.
    pub class: ChangeClass,
    /// What it means, and for whom.
    pub meaning: &'static str,
    /// What to do about it.
    pub advice: &'static str,
}

macro_rules! codes {
    ($($code:ident $id:literal $name:literal $class:ident $meaning:literal $advice:literal)*) => {
        /// A kind of change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ChangeCode {
            $(#[doc = $meaning] $code,)*
        }

        /// All kinds of changes, by their ids.
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
            /// What is known of it.
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
    /// Its id, such as `CD012`.
    #[must_use]
    pub const fn id(self) -> &'static str {
        self.info().id
    }

    /// How bad it is, unless the place says otherwise.
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
        "the API server deletes all objects of the kind, and knows no such kind any more" "keep it, and stop serving versions first"
    ScopeChanged "CD003" "scope-changed" Breaking
        "the API server refuses the update, and made anew all objects are lost" "make a new kind"
    NamesChanged "CD004" "names-changed" Breaking
        "clients ask for a kind or a path that is not there" "make a new kind"
    ShortNameRemoved "CD005" "short-name-removed" Breaking
        "commands that use the short name fail" "keep the short name"
    AliasAdded "CD006" "alias-added" Compatible
        "the kind has one more short name or category" "nothing"
    CategoryRemoved "CD007" "category-removed" Compatible
        "the kind is no longer listed with the category" "nothing"
    ConversionChanged "CD008" "conversion-changed" Compatible
        "versions are converted in another way" "hold the webhook's conversions to what the schemas say"
    ConversionRemoved "CD009" "conversion-removed" Breaking
        "an object of another version is read with nothing but its apiVersion changed" "keep the webhook as long as there are several versions"
    PruningBegun "CD010" "pruning-begun" Breaking
        "fields that the schema does not know are dropped from all objects" "add what is in use to the schema first"

    VersionAdded "CD011" "version-added" Compatible
        "clients may use one more version" "nothing"
    VersionRemoved "CD012" "version-removed" Breaking
        "clients of a version that was served get 404" "deprecate it, stop serving it in a later release, and remove it when nobody asks for it"
    StoredVersionRemoved "CD013" "stored-version-removed" Breaking
        "the API server refuses the update while status.storedVersions names the version" "write all objects anew in the new storage version, and take the version out of status.storedVersions"
    UnservedVersionRemoved "CD014" "unserved-version-removed" NeedsStorageMigration
        "nobody could ask for the version, but objects may be stored in it" "look into status.storedVersions, and write the objects anew if it names the version"
    VersionNoLongerServed "CD015" "version-no-longer-served" Breaking
        "clients of the version get 404" "deprecate it a release earlier"
    VersionServed "CD016" "version-served" Compatible
        "clients may use a version that was not served" "nothing"
    StorageVersionChanged "CD017" "storage-version-changed" NeedsStorageMigration
        "objects stay stored in the old version until each is written again" "write all objects anew before the old version is removed"
    DeprecationChanged "CD018" "deprecation-changed" Compatible
        "clients of the version are warned, in other words, or no more" "nothing"
    StatusAdded "CD019" "status-subresource-added" Breaking
        "writes of the object no longer change its status, and those of /status nothing else" "make controllers write /status first, in a new version"
    StatusRemoved "CD020" "status-subresource-removed" Breaking
        "writes of /status get 404, and whoever writes the object may write its status" "keep it"
    ScaleAdded "CD021" "scale-subresource-added" Compatible
        "the kind can be scaled" "nothing"
    ScaleChanged "CD022" "scale-subresource-changed" Breaking
        "autoscalers read or write another field, or get 404" "keep it"
    SelectableFieldAdded "CD023" "selectable-field-added" Compatible
        "clients may select by one more field" "nothing"
    SelectableFieldRemoved "CD024" "selectable-field-removed" Breaking
        "requests that select by the field are refused" "keep it"
    ColumnsChanged "CD025" "columns-changed" Compatible
        "kubectl get shows other columns" "nothing"

    FieldAdded "CD031" "field-added" Compatible
        "writers may give one more field; old readers do not know it" "nothing"
    FieldRemoved "CD032" "field-removed" Breaking
        "writers are heard no more, readers miss it, and stored values are lost at the next write" "keep it and say that it is deprecated, or make a new version and convert"
    RequiredFieldAdded "CD033" "required-field-added" Breaking
        "writers that do not give the field are refused" "make it optional, or give it a default"
    RequiredAdded "CD034" "required-added" Breaking
        "writers that leave the field out are refused" "give it a default, or ask for it in a new version"
    RequiredWithDefaultAdded "CD035" "required-with-default-added" Compatible
        "the field is required, and filled in where it is missing" "nothing"
    RequiredRemoved "CD036" "required-removed" Compatible
        "writers may leave the field out; readers may miss it" "make sure that readers bear it"
    FieldUntyped "CD037" "field-untyped" Compatible
        "any value may stand there" "make sure that readers bear it"
    FieldTyped "CD038" "field-typed" Breaking
        "a field that could hold anything is held to a schema" "make sure that no object has another value there"
    EntriesAllowed "CD039" "entries-allowed" Compatible
        "writers may give entries of any name" "nothing"
    EntriesRemoved "CD040" "entries-removed" Breaking
        "entries of other names are dropped" "keep additionalProperties"
    UnknownKept "CD041" "unknown-fields-kept" Compatible
        "fields that the schema does not know are kept" "nothing"
    UnknownDropped "CD042" "unknown-fields-dropped" Breaking
        "fields that the schema does not know are dropped" "add what is in use to the schema"
    EmbeddedChanged "CD043" "embedded-resource-changed" Breaking
        "apiVersion, kind and metadata are asked for, or dropped" "make a new field"
    TypeChanged "CD044" "type-changed" Breaking
        "writers that give the old type are refused, or readers that expect it cannot read all objects of the kind" "make a new field"
    NullableAdded "CD045" "nullable-added" Compatible
        "a null is kept, which was dropped; readers may meet it" "make sure that readers bear it"
    NullableRemoved "CD046" "nullable-removed" Breaking
        "a null is dropped, so that the default takes its place or the field is missing" "keep nullable"

    EnumWidened "CD051" "enum-widened" Compatible
        "writers may give more values; readers may meet them" "make sure that readers bear values that they do not know"
    EnumNarrowed "CD052" "enum-narrowed" Breaking
        "writers of a value that is gone are refused" "keep the value, and warn of it"
    BoundLoosened "CD053" "bound-loosened" Compatible
        "writers may give more" "nothing"
    BoundTightened "CD054" "bound-tightened" Breaking
        "writers of values beyond the bound are refused" "tighten it in a new version, or by a rule that lets pass what was"
    PatternRemoved "CD055" "pattern-removed" Compatible
        "writers may give any text" "nothing"
    PatternChanged "CD056" "pattern-changed" Breaking
        "writers of texts that do not match are refused; whether the pattern accepts all that was accepted cannot be told" "tighten it in a new version, or by a rule that lets pass what was"
    FormatLoosened "CD057" "format-loosened" Compatible
        "writers may give more, or the format is one that the API server does not look at" "nothing"
    FormatChanged "CD058" "format-changed" Breaking
        "writers of values without that format are refused" "tighten it in a new version"
    JunctorLoosened "CD059" "junctor-loosened" Compatible
        "writers may give more" "nothing"
    JunctorChanged "CD060" "junctor-changed" Breaking
        "writers may be refused; whether all that was accepted still is cannot be told" "say it by a rule that lets pass what was"
    ListTypeChanged "CD061" "list-type-changed" Breaking
        "items that are the same may be refused, and server-side apply merges the list in another way, or replaces it" "make a new field"
    MapTypeChanged "CD062" "map-type-changed" Breaking
        "server-side apply merges the object in another way, or replaces it" "make a new field"

    DefaultAdded "CD071" "default-added" Breaking
        "what was left out means something else from now on, in stored objects too" "fill it in by a webhook when objects are made, or in a new version"
    DefaultRemoved "CD072" "default-removed" Breaking
        "readers miss a value that was always there" "keep the default"
    DefaultChanged "CD073" "default-changed" Breaking
        "the same manifest makes another object, and stored objects that leave it out change" "change it in a new version"
    DefaultOfRequiredAdded "CD074" "default-of-required-added" Compatible
        "a field that had to be given may be left out" "nothing"
    DefaultUnderBound "CD075" "default-under-bound" Breaking
        "a new field is filled in that its own schema refuses, or maxProperties, an enum, a junctor or an expression above it may" "leave the default out"

    RuleAdded "CD081" "rule-added" Breaking
        "writers of objects that do not meet the rule are refused" "let pass what was: optionalOldSelf, and oldSelf as an alternative"
    RatchetingRuleAdded "CD082" "ratcheting-rule-added" Compatible
        "what is there passes as long as it stays; what is made or changed has to meet the rule" "nothing"
    TransitionRuleAdded "CD083" "transition-rule-added" Breaking
        "updates that do not meet the rule are refused" "let pass what was, or say it in a new version"
    RuleRemoved "CD084" "rule-removed" Compatible
        "writers may give more" "nothing"
    RuleMessageChanged "CD085" "rule-message-changed" Compatible
        "whoever is refused reads other words" "nothing"
    DescriptionChanged "CD086" "description-changed" Compatible
        "kubectl explain says something else" "nothing"
}
