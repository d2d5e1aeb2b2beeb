module kontroller.dev/devcluster/health

go 1.24

// cel-go and k8s.io are those of the API server that devcluster builds, so that little is compiled twice.
require (
	github.com/fluxcd/cli-utils v0.36.0-flux.13
	github.com/google/cel-go v0.26.0
	github.com/yuin/gopher-lua v1.1.2
	k8s.io/api v0.34.4
	k8s.io/apimachinery v0.34.4
)
