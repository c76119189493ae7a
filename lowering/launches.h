// Chains of small layers as one launch: a definition that only one other reads (or several that become one) goes into
// it as a statement (statements.h), where all that is kept at a time fits in the local memory of a work-group. Nothing
// is computed twice and no bit changes. A launch is one work-group then, which cannot use more than one compute unit:
// whether that pays is the caller's decision.
#pragma once

#include "ir/profile.h"
#include "lowering/program.h"

namespace hoist {

/// The producer's term as the first statement of the reader, which reads it from there. Records "fuse-launch". The
/// producer's own definition stays for the caller to remove; it has to stand before the reader.
void keep_in_launch(Program& program, const Definition& producer, Definition& reader);

/// Merges from the end of the program to its start: each definition that is left takes in what it reads, the latest
/// first, as long as nobody else reads that and it fits.
void fuse_launches(Program& program, const Profile& profile);

}  // namespace hoist
