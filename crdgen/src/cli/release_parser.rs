//! The value of `--kubernetes-version`.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use lockkeeper_crd_schema::builtin::Release;
use std::ffi::OsStr;

/// The names of [`Release::SUPPORTED`], for help and completions.
const NAMES: [&str; Release::SUPPORTED.len()] = ["1.33", "1.34", "1.35", "1.36", "1.37"];

/// Parses a release, also from the version of a patch release. Completions have the supported releases.
#[derive(Clone, Debug)]
pub struct ReleaseParser;

impl TypedValueParser for ReleaseParser {
    type Value = Release;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Release, Error> {
        let parse = |text: &str| text.parse::<Release>();
        parse.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(NAMES.into_iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::{NAMES, Release};

    #[test]
    fn names_are_those_of_the_supported_releases() {
        assert_eq!(
            NAMES.map(str::to_owned),
            Release::SUPPORTED.map(|it| it.to_string())
        );
    }
}
