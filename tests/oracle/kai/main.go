// Answers of KAI Scheduler's own division for the cases on standard input: see README.md beside this file.
// Put it into cmd/yfcases of a checkout of KAI Scheduler and run: go run ./cmd/yfcases < cases.json > answers.json
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/NVIDIA/KAI-scheduler/pkg/scheduler/api/common_info"
	"github.com/NVIDIA/KAI-scheduler/pkg/scheduler/log"
	"github.com/NVIDIA/KAI-scheduler/pkg/scheduler/plugins/proportion/resource_division"
	rs "github.com/NVIDIA/KAI-scheduler/pkg/scheduler/plugins/proportion/resource_share"
)

type testCase struct {
	Total  float64      `json:"total"`
	K      float64      `json:"k"`
	Queues [][3]float64 `json:"queues"` // weight, request, usage
}

func main() {
	log.InitLoggers(0)
	var cases []testCase
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	answers := [][]float64{}
	for _, c := range cases {
		queues := map[common_info.QueueID]*rs.QueueAttributes{}
		for i, q := range c.Queues {
			id := common_info.QueueID(fmt.Sprintf("q%02d", i))
			queues[id] = &rs.QueueAttributes{UID: id, Name: string(id), QueueResourceShare: rs.QueueResourceShare{
				CPU: rs.ResourceShare{OverQuotaWeight: q[0], Request: q[1], Usage: q[2], MaxAllowed: -1},
			}}
		}
		resource_division.SetResourcesShare(rs.ResourceQuantities{rs.CpuResource: c.Total}, c.K, queues)
		found := []float64{}
		for i := range c.Queues {
			found = append(found, queues[common_info.QueueID(fmt.Sprintf("q%02d", i))].CPU.FairShare)
		}
		answers = append(answers, found)
	}
	json.NewEncoder(os.Stdout).Encode(answers)
}
