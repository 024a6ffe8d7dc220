// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAGFILE_DAGJSON_H
#define MGPU_PLANNER_DAGFILE_DAGJSON_H

// Reads `mgpu-dag/2`, the text form of a DAG without a program:
//   {"format":"mgpu-dag/2","name":S,"devices":N,"spmd":bool,
//    "resident_bytes":B,"nodes":[
//     {"id":I,"kind":"kernel","name":S,"flops":F,"bytes_read":B,
//      "bytes_written":B,"out_bytes":B,"deps":[I...]},
//     {"id":I,"kind":"all_reduce|all_gather|reduce_scatter|all_to_all|permute|
//      broadcast|send|recv","name":S,"bytes":B,"group":N,"out_bytes":B,
//      "deps":[...]}, ...]}
// Optional in a node: "device" (files that are not spmd), "duration_us"
// (frozen), "workspace_bytes", "alias_of", "op":"matmul" (a product on tensor
// cores, for the cost model), "op":"dynamic-slice" (a kernel that only copies a
// part of what it reads, at an offset it reads; without "op" the name says so,
// as XLA's "dynamic-slice.12"), "splittable": the length of the outermost axis
// of a kernel's output, along which it can be cut, "sm_share": the part of the
// multiprocessors that a kernel takes, above 0 and at most 1 (files that are
// spmd: kernels whose shares sum to at most 1 may run side by side). Ids are 0,
// 1, 2, ... in order and deps name earlier nodes. A collective without a name
// is called by its kind and number. Unknown fields are kept out: they do not
// change a plan.
//
// Files that are not spmd say more, so that a program can be written as one:
//   {"kind":"copy","from":D,"to":D,"bytes":B}   D is a device or "host"; it
//       reads the output of the first dependence there that is large enough
//   {"kind":"fill","device":D,"bytes":B}        a kernel that only writes
//   {"kind":"host","duration_us":T}             work of the host
// "devices":[D...] of a node, "phase":"load|prologue|replay|epilogue|fetch",
// "location":S; at the top "loop_trips":N and
//   "buffers":[{"name":S,"device":D,"bytes":B,"kept":bool}]
// which nodes name instead of "out_bytes":
//   "uses":[{"buffer":I,"mode":"r|w|rw","offset":B,"element_bytes":B,
//            "sizes":[N...],"strides":[B...]}]   without "sizes": the whole
// The uses of a copy are what it reads, then what it writes. Each class of work
// of a device (kernels and fills, copies, collectives) is a resource.

#include "planner/dag/Dag.h"

#include <string_view>

namespace mgpu::planner {

/// Nodes come out opaque: plannable, not runnable. A node's output is a buffer
/// it writes and its dependents read: Temporary where something reads it,
/// Resident (kept to the end) where nothing does. `alias_of` writes the other
/// node's buffer in place. A file that is spmd has its nodes on device 0; in
/// others a collective without "device" occupies devices 0 .. group-1.
/// `source` names the text in errors.
Result<Dag> parseDagJson(std::string_view text, std::string_view source);

/// Reads a .json or .json.gz file. Other compression is the caller's business
/// (`xz -d`).
Result<Dag> readDagJson(const std::string &path);

/// A DAG such as parseDagJson() gives, or a transform makes of one, as text
/// that it reads; Unsupported for others. Every edge comes out as a
/// dependence, so aliases and workspaces need no words of their own.
Result<std::string> dagJsonText(const Dag &dag);

/// A program's DAG with durations by node: the plan of what parseDagJson()
/// makes of it takes as long as the program's own.
std::string programJsonText(const Dag &dag, std::span<const double> durations);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAGFILE_DAGJSON_H
