//! The objects that the scenarios start with.

/// Two namespaces with a LocalQueue each, their quota, and two priority
/// classes, `low` and `high`.
pub const CLUSTER_OBJECTS: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: Namespace
metadata: {name: dev}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: 100
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: lockkeeper.dev/v1alpha1
kind: ResourceFlavor
metadata: {name: default}
spec: {}
---
apiVersion: lockkeeper.dev/v1alpha1
kind: Cohort
metadata: {name: lab}
spec: {}
---
apiVersion: lockkeeper.dev/v1alpha1
kind: ClusterQueue
metadata: {name: research}
spec:
  cohortName: lab
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu]
      flavors:
        - name: default
          resources:
            - {name: cpu, nominalQuota: 8, lendingLimit: 4}
---
apiVersion: lockkeeper.dev/v1alpha1
kind: LocalQueue
metadata: {name: main, namespace: team}
spec: {clusterQueue: research}
---
apiVersion: lockkeeper.dev/v1alpha1
kind: LocalQueue
metadata: {name: main, namespace: dev}
spec: {clusterQueue: research}
";

/// A `ClusterQueue` without a cohort that lends more than its nominal quota.
pub const BAD_CLUSTER_QUEUE: &str = r"
apiVersion: lockkeeper.dev/v1alpha1
kind: ClusterQueue
metadata: {name: generous}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu]
      flavors:
        - name: default
          resources:
            - {name: cpu, nominalQuota: 2, lendingLimit: 4}
";

/// A class that is the global default.
pub const GLOBAL_DEFAULT: &str = r"
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: usual}
value: 500
globalDefault: true
";

/// A minimal Workload with one pod set.
pub fn workload(namespace: &str, name: &str) -> String {
    format!(
        r"
apiVersion: lockkeeper.dev/v1alpha1
kind: Workload
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  queueName: main
  podSets:
    - template:
        spec:
          restartPolicy: Never
          containers:
            - name: train
              image: registry.example.com/train:1
              resources: {{requests: {{cpu: 1}}}}
"
    )
}

/// The same, with a priority class.
pub fn workload_of_class(namespace: &str, name: &str, class: &str) -> String {
    format!(
        "{}  priorityClassName: {class}\n",
        workload(namespace, name)
    )
}

/// A pod of the job `train` with the preemptible label.
pub fn pod(name: &str, preemptible: bool) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: team
  labels:
    pod-group.scheduling.sigs.k8s.io: train
    quota.scheduling.koordinator.sh/preemptible: "{preemptible}"
spec:
  containers:
    - name: train
      image: registry.example.com/train:1
"#
    )
}

/// A Job in the namespace `team`, with a queue label if `queue` is given, and with the field `suspend`
/// if that is given.
pub fn job(name: &str, queue: Option<&str>, suspend: Option<bool>) -> String {
    let labels = queue.map_or_else(String::new, |queue| {
        format!("  labels: {{lockkeeper.dev/queue-name: {queue}}}\n")
    });
    let suspend = suspend.map_or_else(String::new, |suspend| format!("  suspend: {suspend}\n"));
    format!(
        r"
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  namespace: team
{labels}spec:
{suspend}  template:
    spec:
      restartPolicy: Never
      containers:
        - name: train
          image: registry.example.com/train:1
"
    )
}

/// Several manifests as one file.
pub fn file(manifests: &[&str]) -> String {
    manifests.join("---\n")
}
