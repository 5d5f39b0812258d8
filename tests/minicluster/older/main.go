// Command older has the control plane of an older Kubernetes for the tests: kube-apiserver,
// kube-controller-manager, kube-scheduler and kubectl in one binary. etcd and kwok are those of
// the parent folder. The first argument names the program, as there.
//
// Each vN.M.mod has the modules of one Kubernetes:
//
//	go build -modfile=older/v1.33.mod ./older
package main

import (
	"fmt"
	"io"
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// guardVariable makes a server end with the process that started it, as in the parent folder.
const guardVariable = "MINICLUSTER_EXIT_WITH_STDIN"

const programs = "kube-apiserver, kube-controller-manager, kube-scheduler, kubectl"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintf(os.Stderr, "usage: older PROGRAM [flags], where PROGRAM is one of %s\n", programs)
		os.Exit(2)
	}
	// Each program reads os.Args itself; it must see its own name first.
	os.Args = os.Args[1:]
	switch program := os.Args[0]; program {
	case "kube-apiserver":
		guard()
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		guard()
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "kube-scheduler":
		guard()
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kubectl":
		command := cmd.NewDefaultKubectlCommand()
		if err := cli.RunNoErrOutput(command); err != nil {
			util.CheckErr(err)
		}
	default:
		fmt.Fprintf(os.Stderr, "older: no program %q; one of %s\n", program, programs)
		os.Exit(2)
	}
}

func guard() {
	if os.Getenv(guardVariable) == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
}
