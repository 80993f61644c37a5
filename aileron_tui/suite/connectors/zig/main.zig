//! A connector in Zig: `get_note` reads a note, `edit_note` replaces its text.
//!
//! It runs anew for each op. connector.zig reads the op, sends requests through Aileron, and prints the result.

const std = @import("std");
const connector = @import("connector.zig");
const Context = connector.Context;
const Value = connector.Value;

pub const service: connector.Service = .{ .name = "the service", .problem = problem };

const notes = "https://notes.example.com/notes/";

/// What the service says of an error: a JSON object with a text in `error`.
fn problem(_: std.mem.Allocator, answer: Value) ?[]const u8 {
    return connector.string(answer, "error");
}

fn url(context: *Context) connector.OpError![]const u8 {
    return std.mem.concat(context.gpa, u8, &.{ notes, try context.id("id") });
}

fn getNote(context: *Context) connector.OpError!Value {
    return context.ask("GET", try url(context), null);
}

fn editNote(context: *Context) connector.OpError!Value {
    const text = try context.text("text") orelse return context.badArgument("text", "is missing");
    return context.ask("PUT", try url(context), try connector.json(context.gpa, .{ .text = text }));
}

export fn _start() void {
    connector.main(.{
        .{ "get_note", getNote },
        .{ "edit_note", editNote },
    });
}
