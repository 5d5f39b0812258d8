//! Admission policies with their parameters and Namespaces: of the checked files, `--policies`, `--world` and a cluster.

use super::inputs::Input;
use clap::Args;
use lockkeeper_check::collect::{add_param, add_policy};
use lockkeeper_check::{AdmissionPolicies, DefinitionSet, PolicySet, UserInfo, worker_pool};
use serde_json::Value;

/// The group of every user.
const AUTHENTICATED: &str = "system:authenticated";

/// The start of the name of a service account; its namespace and name follow.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The user whose requests admission policies decide about.
#[derive(Args, Debug)]
pub(super) struct PolicyUser {
    /// Evaluate admission policies for requests of this user
    #[arg(long, value_name = "NAME", conflicts_with = "stored")]
    user: Option<String>,

    /// A group of the user of --user; repeatable
    #[arg(long = "group", value_name = "NAME", requires = "user")]
    user_groups: Vec<String>,
}

impl PolicyUser {
    /// The user with the groups that the API server adds.
    fn info(&self) -> Option<UserInfo> {
        let name = self.user.clone()?;
        let mut groups = self.user_groups.clone();
        let account = name.strip_prefix(SERVICE_ACCOUNT);
        if let Some((namespace, _)) = account.and_then(|it| it.split_once(':')) {
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        groups.push(AUTHENTICATED.to_owned());
        Some(UserInfo { name, groups })
    }
}

/// The policies of all sources, those of files first.
pub(super) struct PolicySources<'a> {
    /// Those of the checked files.
    pub(super) of_files: PolicySet,
    /// Those of the cluster, with their parameters.
    pub(super) of_cluster: PolicySet,
    /// The objects of `--policies`.
    pub(super) objects: &'a [Value],
    /// The files of `--world`.
    pub(super) world: &'a [Input],
    /// Whether there are no other objects.
    pub(super) is_closed: bool,
}

impl PolicySources<'_> {
    /// The policies with the parameters among the files.
    pub(super) fn load(
        self,
        inputs: &[Input],
        user: &PolicyUser,
        definitions: &DefinitionSet,
    ) -> AdmissionPolicies {
        let mut set = self.of_files;
        for object in self.objects {
            add_policy(&mut set, object);
        }
        for_each_object(self.world, |object| add_policy(&mut set, &object));
        set.merge(self.of_cluster);
        let kinds = set.param_kinds();
        if !kinds.is_empty() {
            let mut add = |object: Value| {
                add_param(&mut set, &kinds, &object);
            };
            // The files are read once more, because policies may follow their parameters.
            for_each_object(inputs, &mut add);
            self.objects.iter().cloned().for_each(&mut add);
            for_each_object(self.world, &mut add);
        }
        if self.is_closed {
            set.set_complete();
        }
        AdmissionPolicies::new(set, user.info(), definitions)
    }
}

/// Calls `consume` with every object of the inputs, in their order. An input that cannot be read is reported elsewhere.
fn for_each_object(inputs: &[Input], mut consume: impl FnMut(Value) + Send) {
    worker_pool::run_ordered(
        inputs.len(),
        worker_pool::thread_count(),
        |at| inputs.get(at).map(Input::read),
        |_, source| {
            if let Some(Ok(source)) = source {
                let whole = source.documents.into_iter().filter(|it| !it.is_patch);
                whole.map(|it| it.value).for_each(&mut consume);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::PolicyUser;

    #[test]
    fn users_have_the_groups_of_the_api_server() {
        for (name, groups, expected) in [
            ("me", &["team"][..], "team system:authenticated"),
            (
                "system:serviceaccount:a:robot",
                &[],
                "system:serviceaccounts system:serviceaccounts:a system:authenticated",
            ),
        ] {
            let user = PolicyUser {
                user: Some(name.to_owned()),
                user_groups: groups.iter().map(|it| (*it).to_owned()).collect(),
            };
            assert_eq!(user.info().unwrap().groups.join(" "), expected);
        }
    }
}
