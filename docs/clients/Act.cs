// The binary call from C#: one state and one z in, joint targets out. .NET 6 or newer, or Unity 2022 (netstandard 2.1).
using System;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Runtime.InteropServices;
using System.Threading.Tasks;

public sealed class Skills : IDisposable
{
    private readonly HttpClient http;

    public Skills(string url) => http = new HttpClient { BaseAddress = new Uri(url) };

    public void Dispose() => http.Dispose();

    /// Joint targets, rad. Numbers travel as little-endian float32, as they lie in the memory of x86 and ARM.
    public async Task<float[]> Act(float[] state, float[] z)
    {
        var body = new byte[4 * (state.Length + z.Length)];
        Buffer.BlockCopy(state, 0, body, 0, 4 * state.Length);
        Buffer.BlockCopy(z, 0, body, 4 * state.Length, 4 * z.Length);
        using var content = new ByteArrayContent(body);
        content.Headers.ContentType = new MediaTypeHeaderValue("application/octet-stream");
        content.Headers.Add("X-Tensors", $"state={state.Length},z={z.Length}");
        using var answer = await http.PostAsync("/act", content).ConfigureAwait(false);
        var bytes = await answer.Content.ReadAsByteArrayAsync().ConfigureAwait(false);
        if (!answer.IsSuccessStatusCode)  // a Problem, as JSON: code, message, field, expected
            throw new InvalidOperationException(System.Text.Encoding.UTF8.GetString(bytes));
        return MemoryMarshal.Cast<byte, float>(bytes).ToArray();
    }
}

public static class Program
{
    public static async Task Main(string[] words)
    {
        using var skills = new Skills(words[0]);
        var state = new float[int.Parse(words[1])];
        var z = new float[int.Parse(words[2])];
        state[2] = 0.9f;  // pelvis up, m
        state[3] = 1.0f;  // no rotation, wxyz
        z[0] = 1.0f;      // a point of the unit sphere
        foreach (var target in await skills.Act(state, z)) Console.WriteLine(target.ToString("R"));
    }
}
