//! A connector for Todoist's tasks: list, get, close. About the least that a connector with a key can be.

const std = @import("std");
const connector = @import("connector");
const Context = connector.Context;
const Value = connector.Value;

pub const service: connector.Service = .{ .name = "Todoist", .credential = "api_key", .problem = problem };

const tasks = "https://api.todoist.com/api/v1/tasks";

/// What Todoist says of an error: a JSON object with a text in `error`.
fn problem(_: std.mem.Allocator, answer: Value) ?[]const u8 {
    return connector.string(answer, "error");
}

fn listTasks(context: *Context) connector.OpError!Value {
    const limit = try context.integer("limit", 1, 200) orelse "50";
    const base = try std.mem.concat(context.gpa, u8, &.{ tasks, "?limit=", limit });
    const cursor = try context.text("cursor") orelse return context.ask("GET", base, null);
    return context.ask("GET", try std.mem.concat(context.gpa, u8, &.{ base, "&cursor=", try context.escape(cursor) }), null);
}

fn getTask(context: *Context) connector.OpError!Value {
    return context.ask("GET", try std.mem.concat(context.gpa, u8, &.{ tasks, "/", try context.id("id") }), null);
}

fn closeTask(context: *Context) connector.OpError!Value {
    const url = try std.mem.concat(context.gpa, u8, &.{ tasks, "/", try context.id("id"), "/close" });
    const response = try context.send("POST", url, null);
    // Todoist answers with 204 and no body.
    if (response.status < 200 or response.status > 299) return context.parse(response, .object);
    var closed: std.json.ObjectMap = .empty;
    try closed.put(context.gpa, "closed", .{ .string = try context.required("id") });
    return .{ .object = closed };
}

export fn _start() void {
    connector.main(.{
        .{ "list_tasks", listTasks },
        .{ "get_task", getTask },
        .{ "close_task", closeTask },
    });
}
