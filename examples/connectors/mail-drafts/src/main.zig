//! The module of the local mailbox: its requests name no credential.

const drafts = @import("drafts.zig");
const connector = @import("connector");

pub const service: connector.Service = .{ .name = "Gmail", .problem = drafts.problem };

export fn _start() void {
    connector.main(drafts.ops);
}
