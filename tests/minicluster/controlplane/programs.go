// Package controlplane runs the programs of Kubernetes that the test cluster consists of, in one binary. Its version
// is that of the modules it is built with.
package controlplane

import (
	"io"
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// Programs are the names that Run knows.
const Programs = "kube-apiserver, kube-controller-manager, kube-scheduler, kubectl"

// guardVariable makes a server end with the process that started it: the
// parent holds the write end of standard input, which closes however the
// parent dies.
const guardVariable = "MINICLUSTER_EXIT_WITH_STDIN"

// Run runs a program, which reads its flags from os.Args, and exits with its
// code. It returns if it does not know the program.
func Run(program string) {
	switch program {
	case "kube-apiserver":
		Guard()
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		Guard()
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "kube-scheduler":
		Guard()
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kubectl":
		command := cmd.NewDefaultKubectlCommand()
		if err := cli.RunNoErrOutput(command); err != nil {
			util.CheckErr(err)
		}
		os.Exit(0)
	}
}

// Guard ends this process when its parent ends, if the parent asks for it.
func Guard() {
	if os.Getenv(guardVariable) == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
}
