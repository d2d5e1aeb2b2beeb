// Command health says how GitOps tools judge a Kubernetes object, by the engines that they use themselves.
//
// It reads a question from standard input and writes the answer to standard output, both in JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// question has a health script of Argo CD and an entry of healthCheckExprs of a Flux Kustomization.
type question struct {
	Object      unstructured.Unstructured `json:"object"`
	Lua         string                    `json:"lua"`
	Expressions map[string]string         `json:"expressions"`
}

type verdict struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type answer struct {
	Kstatus verdict `json:"kstatus"`
	Argo    verdict `json:"argo"`
	Flux    verdict `json:"flux"`
}

func main() {
	var asked question
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		log.Fatalf("the question is not JSON with an object: %v", err)
	}
	answered, err := judge(asked)
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answered); err != nil {
		log.Fatal(err)
	}
}

func judge(asked question) (answered answer, err error) {
	computed, err := status.Compute(&asked.Object)
	if err != nil {
		return answered, fmt.Errorf("kstatus: %w", err)
	}
	answered.Kstatus = verdict{Status: computed.Status.String(), Message: computed.Message}
	if answered.Argo, err = runLua(asked.Object.Object, asked.Lua); err != nil {
		return answered, fmt.Errorf("the Lua script: %w", err)
	}
	flux, err := evaluate(&asked.Object, computed.Status, asked.Expressions)
	if err != nil {
		return answered, fmt.Errorf("the CEL expressions: %w", err)
	}
	answered.Flux = verdict{Status: flux.String()}
	return answered, nil
}

// runLua gives a script what Argo CD gives one of argocd-cm without useOpenLibs: few libraries, for a second.
func runLua(object map[string]any, script string) (verdict, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	// The package library is the one that has to come first.
	for _, open := range []lua.LGFunction{lua.OpenPackage, lua.OpenBase, lua.OpenTable} {
		state.Push(state.NewFunction(open))
		state.Call(0, 0)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(ctx)
	state.SetGlobal("obj", luaValue(state, object))
	if err := state.DoString(script); err != nil {
		return verdict{}, err
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return verdict{}, fmt.Errorf("it returns a %s, not a table", state.Get(-1).Type())
	}
	said := func(key string) string { return lua.LVAsString(table.RawGetString(key)) }
	return verdict{Status: said("status"), Message: said("message")}, nil
}

func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		table := state.NewTable()
		for _, item := range value {
			table.Append(luaValue(state, item))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for key, item := range value {
			table.RawSetString(key, luaValue(state, item))
		}
		return table
	}
	return lua.LNil
}

// evaluate goes by Flux's RFC 0009: an old generation is in progress, and the first expression that holds decides.
func evaluate(object *unstructured.Unstructured, kstatus status.Status, told map[string]string) (status.Status, error) {
	observed, has, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if err != nil || kstatus == status.TerminatingStatus || has && observed != object.GetGeneration() {
		return kstatus, err
	}
	environment, err := cel.NewEnv(cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets())
	if err != nil {
		return "", err
	}
	names := []string{"inProgress", "failed", "current"}
	for i, means := range []status.Status{status.InProgressStatus, status.FailedStatus, status.CurrentStatus} {
		// Flux does not check types either: it does not know the top-level fields of an object beforehand.
		parsed, issues := environment.Parse(told[names[i]])
		if issues.Err() != nil {
			return "", fmt.Errorf("%s: %w", names[i], issues.Err())
		}
		program, err := environment.Program(parsed)
		if err != nil {
			return "", fmt.Errorf("%s: %w", names[i], err)
		}
		holds, _, err := program.Eval(object.Object)
		if err != nil {
			return "", fmt.Errorf("%s: %w", names[i], err)
		}
		if holds.Value() == true {
			return means, nil
		}
	}
	return status.InProgressStatus, nil
}
